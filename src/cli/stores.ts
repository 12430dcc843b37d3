import { statSync } from 'node:fs'
import { resolve } from 'node:path'
import { type StoreConfig, WrongConfig } from '../config.ts'
import { examineStore, openStore, type StoreLocation } from '../store/open.ts'
import { type Store, type StoreEvents, UnusableStore } from '../store/store.ts'
import type { Call, Printed } from './command.ts'
import { CommandFailed, exitCodes } from './exit.ts'
import { isSameFile } from './files.ts'
import { type Flags, inMemory } from './flags.ts'
import { toPrintable } from './terminal.ts'

/** Opens a store, uses it and closes it. */
export async function withStore<Value>(
  location: StoreLocation,
  use: (store: Store) => Promise<Value>,
  events: Partial<StoreEvents> = {},
): Promise<Value> {
  const store = await openStore(location, events)
  try {
    return await use(store)
  } finally {
    await store.close()
  }
}

/** Refuses a store in memory: it belongs to one process, and no command can reach it. */
export function requirePersistent({ label, setting }: StoreLocation): void {
  if (label !== inMemory) return
  throw new WrongConfig([
    `A store in memory belongs to the process that opened it. Name a store on disk with ${setting}.`,
  ])
}

/** The path of a SQLite database. For one of PostgreSQL, throws what to use instead. */
export function requireSqlite(location: StoreLocation, instead: string): string {
  if (location.engine === 'postgres') throw new UnusableStore(instead)
  return location.path
}

/**
 * Refuses a path without a store, for commands that never make one. An empty file or database is
 * noticed when it is opened.
 */
export function requireExisting(config: StoreConfig): void {
  requirePersistent(config.storeLocation)
  if (!exists(config.storeLocation)) throw noStore(config)
}

export function noStore({ storeLocation }: StoreConfig): WrongConfig {
  return new WrongConfig([
    `There is no store at ${toPath(storeLocation)}. Run the command in the folder of the service, or name the store with --database or DATABASE_URL.`,
  ])
}

/** Refuses to make a store at the default path unasked: the command may run in the wrong folder. */
export function requireExistingOrNamed(
  { storeLocation, isStoreNamed }: StoreConfig,
  { create = false }: { readonly create?: boolean | undefined },
): void {
  requirePersistent(storeLocation)
  if (isStoreNamed || create || exists(storeLocation)) return
  throw new WrongConfig([
    `There is no store at ${toPath(storeLocation)}. Run the command in the folder of the service, name the store with --database or DATABASE_URL, or make a new one with --create.`,
  ])
}

/**
 * Whether there seems to be a store, without opening it. A folder that may not be searched may have
 * one: opening it then explains why it cannot be used.
 */
export function exists(location: StoreLocation): boolean {
  if (location.engine === 'postgres') return true
  try {
    return statSync(location.path, { throwIfNoEntry: false }) !== undefined
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EACCES'
  }
}

/** The store as messages name it: with its whole path, and without a password. */
export function toName(location: StoreLocation): string {
  return location.engine === 'postgres' ? location.label : `sqlite:${resolve(location.path)}`
}

function toPath(location: StoreLocation): string {
  return toName(location).replace(/^sqlite:/, '')
}

/** Whether two addresses clearly name one store. Neither is opened. */
export function isSameStore(one: StoreLocation, other: StoreLocation): boolean {
  if (one.engine === 'postgres' || other.engine === 'postgres') return one.label === other.label
  return isSameFile(one.path, other.path)
}

/** Refuses to write to a file that the store has, or that SQLite may take for its own. */
export function requireOtherFile(path: string, location: StoreLocation): void {
  if (!isFileOfStore(path, location)) return
  const message = `${path} is a file of the store. Name another file.`
  throw new CommandFailed(exitCodes.cannotCreate, message)
}

/** Whether a path leads to a file that the store has or may get. */
export function isFileOfStore(path: string, location: StoreLocation): boolean {
  if (location.engine === 'postgres') return false
  return ['', '-wal', '-shm', '-journal'].some((suffix) => isSameFile(path, location.path + suffix))
}

/** Examines a store, and says what to do. Ends with 1 where there is something to do. */
export async function checkStore({ config }: Call<Flags, 'location'>): Promise<Printed> {
  requireExisting(config)
  const json = await examineStore(config.storeLocation)
  const lines = json.map(
    ({ subject, state, message }) =>
      `${state.padEnd(6)} ${subject.padEnd(12)} ${toPrintable(message)}`,
  )
  const hasWork = json.some(({ state }) => state === 'to do')
  const failure = hasWork ? new CommandFailed(exitCodes.notOk, '') : undefined
  return { json, text: lines.join('\n'), failure }
}
