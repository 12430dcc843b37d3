import { existsSync, realpathSync } from 'node:fs'
import { resolve } from 'node:path'
import { type Config, WrongConfig } from '../config.ts'
import type { StoreLocation } from '../store/open.ts'

/** A store in memory belongs to one process: no other command can reach it. */
export function requireKept({ storeLocation }: Pick<Config, 'storeLocation'>): void {
  if (storeLocation.label === 'sqlite::memory:') {
    throw new WrongConfig([
      'A store in memory belongs to the process that has it: name one on disk with DATABASE_URL or --database.',
    ])
  }
}

/** Looking must not make a store: the path may be a typing error. */
export function requireExisting(config: { readonly storeLocation: StoreLocation }): void {
  requireKept(config)
  const { storeLocation } = config
  if (storeLocation.engine === 'sqlite' && !existsSync(storeLocation.path)) {
    throw new WrongConfig([
      `There is no store at ${storeLocation.path}. Set DATABASE_URL or --database.`,
    ])
  }
}

/** Whether two addresses name one store, as far as that can be seen without opening it. */
export function isSameStore(one: StoreLocation, other: StoreLocation): boolean {
  if (one.engine === 'postgres' || other.engine === 'postgres') return one.label === other.label
  return toIdentity(one.path) === toIdentity(other.path)
}

/** The file behind a path, which may be written in several ways or be a link. */
function toIdentity(path: string): string {
  return existsSync(path) ? realpathSync(path) : resolve(path)
}
