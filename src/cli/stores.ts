import { statSync } from 'node:fs'
import { resolve } from 'node:path'
import { type StoreConfig, WrongConfig } from '../config.ts'
import { followLink, isSameFile } from '../paths.ts'
import { examineStore, openStore, type StoreLocation } from '../store/open.ts'
import type { Store, StoreEvents } from '../store/store.ts'
import type { Call, Printed } from './commands.ts'
import { inMemory } from './flags.ts'
import { CommandFailed, exitCodes, toPrintable } from './terminal.ts'

/** Opens a store, uses it and closes it. */
export async function withStore<Value>(
  location: StoreLocation,
  use: (store: Store) => Promise<Value>,
  events: Partial<StoreEvents>,
): Promise<Value> {
  requirePersistent(location)
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

/** Refuses a path without a store, for commands that do not open it. */
export function requireExisting(config: StoreConfig): void {
  const { storeLocation: location } = config
  requirePersistent(location)
  if (location.engine === 'postgres') return
  try {
    if (statSync(location.path, { throwIfNoEntry: false }) !== undefined) return
  } catch {
    // There may be one. The command then explains why it cannot be used.
    return
  }
  throw noStore(config)
}

/** Refuses to make a store at the default path unasked: the command may run in the wrong folder. */
export function requireAsked(
  config: StoreConfig,
  { create }: { readonly create?: boolean | undefined },
): void {
  const how = 'name the store with --database or DATABASE_URL, or make a new one with --create'
  if (!config.isStoreNamed && !create) throw noStore(config, how)
}

export function noStore(
  { storeLocation }: StoreConfig,
  how = 'or name the store with --database or DATABASE_URL',
): WrongConfig {
  const path = toName(storeLocation).replace(/^sqlite:/, '')
  return new WrongConfig([
    `There is no store at ${path}. Run the command in the folder of the service, ${how}.`,
  ])
}

/** The store as messages name it: with its whole path, and without a password. */
export function toName(location: StoreLocation): string {
  return location.engine === 'postgres' ? location.label : `sqlite:${resolve(location.path)}`
}

/** Refuses to write to a file that the store has, or that SQLite may take for its own. */
export function requireOtherFile(path: string, location: StoreLocation, name = path): void {
  if (location.engine === 'postgres') return
  const database = followLink(location.path)
  for (const suffix of ['', '-wal', '-shm', '-journal']) {
    if (!isSameFile(path, database + suffix)) continue
    const message = `${name} is a file of the store. Name another file.`
    throw new CommandFailed(exitCodes.cannotCreate, message)
  }
}

/** Examines a store, and says what to do. Ends with 1 where there is something to do. */
export async function checkStore({ config }: Call<'check'>): Promise<Printed> {
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
