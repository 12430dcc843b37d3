import type { Finding } from './finding.ts'
import { splitAddress } from './postgres/address.ts'
import { type Journaling, type Store, type StoreEvents, UnusableStore } from './store.ts'

/** Where a store is. */
export type StoreLocation = {
  /** Can be shown: it has no password. */
  readonly label: string
  /** The variable or flag that names it, for messages. */
  readonly setting: string
} & (
  | { readonly engine: 'sqlite'; readonly path: string }
  | { readonly engine: 'postgres'; readonly url: string }
)

/** The messages of the engines name this one. */
const defaultSetting = 'DATABASE_URL'

/**
 * Parses the address of a store; undefined if it names none. Its parameters are checked when the
 * store is opened.
 */
export function toStoreLocation(url: string, setting = defaultSetting): StoreLocation | undefined {
  if (url.includes('\0') || url.startsWith('sqlite://')) return undefined
  const path = /^sqlite:(.+)$/s.exec(url)?.[1]
  if (path !== undefined) return { engine: 'sqlite', path, label: `sqlite:${path}`, setting }
  const parts = splitAddress(url)
  if (parts === undefined) return undefined
  const { scheme, user, authority, database, query } = parts
  const [host] = authority === '' ? (/\bhost=[^&]*/.exec(query) ?? []) : []
  const where = `${authority}${database && '/'}${database}${host ? `?${host}` : ''}`
  const label = `${scheme}${user}${user && '@'}${where}`
  return { engine: 'postgres', url, label, setting }
}

const silent: StoreEvents = { onLost() {}, onFound() {} }

/** Opens the store, or creates it. Throws `UnusableStore` with one line for the operator. */
export async function openStore(
  location: StoreLocation,
  given: Partial<StoreEvents> = {},
  journaling: Journaling = 'as before',
): Promise<Store> {
  return openEngine(location, { ...silent, ...given }, journaling).catch(rethrowFor(location))
}

/**
 * Opens an empty store without a journal. It is in memory until it outgrows the cache of SQLite,
 * and then in a temporary file without a name.
 */
export function openScratchStore(): Promise<Store> {
  const location = { engine: 'sqlite', path: '', label: 'a temporary file', setting: '' } as const
  return openStore(location, {}, 'off')
}

/** Loads only the engine in use, so that SQLite does not wait for the driver of PostgreSQL. */
async function openEngine(
  location: StoreLocation,
  events: StoreEvents,
  journaling: Journaling,
): Promise<Store> {
  if (location.engine === 'postgres') {
    const { openPrimary } = await import('./postgres/primary.ts')
    const { buildPostgresStore } = await import('./postgres/store.ts')
    return buildPostgresStore(await openPrimary(location.url, events, { journaling }))
  }
  const { openConnection } = await import('./sqlite/connection.ts')
  const { buildSqliteStore } = await import('./sqlite/store.ts')
  const db = openConnection(location.path, events)
  try {
    return buildSqliteStore(db, { journaling })
  } catch (error) {
    db.close()
    throw error
  }
}

function nameSetting(message: string, { setting }: StoreLocation): string {
  return message.replaceAll(defaultSetting, setting)
}

function rethrowFor(location: StoreLocation): (error: unknown) => never {
  return (error) => {
    if (error instanceof UnusableStore) error.message = nameSetting(error.message, location)
    throw error
  }
}

/** Examines a store, which may be in use, without changing it. */
export async function examineStore(location: StoreLocation): Promise<Finding[]> {
  const findings = await examineEngine(location).catch(rethrowFor(location))
  return findings.map((one) => ({ ...one, message: nameSetting(one.message, location) }))
}

async function examineEngine(location: StoreLocation): Promise<Finding[]> {
  if (location.engine === 'sqlite') {
    const { examineFile } = await import('./sqlite/examine.ts')
    return examineFile(location.path)
  }
  const { examineServer } = await import('./postgres/examine.ts')
  return examineServer(location.url)
}
