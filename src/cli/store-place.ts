import { existsSync } from 'node:fs'
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
