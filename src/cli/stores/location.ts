import { existsSync } from 'node:fs'
import { type Config, WrongConfig } from '../../config.ts'
import type { StoreLocation } from '../../store/open.ts'
import { isSameFile } from '../files/same.ts'

/** Refuses a store in memory: it belongs to one process, and no command can reach it. */
export function requireKept({ storeLocation }: Pick<Config, 'storeLocation'>): void {
  if (storeLocation.label !== 'sqlite::memory:') return
  throw new WrongConfig([
    'A store in memory belongs to the process that opened it. Name a store on disk with --database or DATABASE_URL.',
  ])
}

/**
 * Refuses a path without a store, for commands that must not make one: it may be a typing error.
 */
export function requireExisting(config: Pick<Config, 'storeLocation'>): void {
  requireKept(config)
  const { storeLocation } = config
  if (storeLocation.engine === 'postgres' || existsSync(storeLocation.path)) return
  throw new WrongConfig([
    `There is no store at ${storeLocation.path}. Set DATABASE_URL or --database.`,
  ])
}

/** Whether two addresses name one store, as far as that shows without opening it. */
export function isSameStore(one: StoreLocation, other: StoreLocation): boolean {
  if (one.engine === 'postgres' || other.engine === 'postgres') return one.label === other.label
  return isSameFile(one.path, other.path)
}

/** The files that a store has or may get. */
export function toFiles(location: StoreLocation): string[] {
  if (location.engine === 'postgres') return []
  return ['', '-wal', '-shm', '-journal'].map((suffix) => location.path + suffix)
}
