import type { Finding } from './finding.ts'
import { splitAddress } from './postgres/address.ts'
import type { Journaling, Store, StoreEvents } from './store.ts'

/** The store that DATABASE_URL names. The label can be shown: it has no password. */
export type StoreLocation =
  | { readonly engine: 'sqlite'; readonly path: string; readonly label: string }
  | { readonly engine: 'postgres'; readonly url: string; readonly label: string }

/**
 * Parses DATABASE_URL; undefined if it names no store. Its parameters are checked when the store is
 * opened.
 */
export function toStoreLocation(url: string): StoreLocation | undefined {
  if (url.includes('\0') || url.startsWith('sqlite://')) return undefined
  const path = /^sqlite:(.+)$/s.exec(url)?.[1]
  if (path !== undefined) return { engine: 'sqlite', path, label: `sqlite:${path}` }
  const parts = splitAddress(url)
  if (parts === undefined) return undefined
  const { scheme, user, authority, database, query } = parts
  const [host] = authority === '' ? (/\bhost=[^&]*/.exec(query) ?? []) : []
  const where = `${authority}${database && '/'}${database}${host ? `?${host}` : ''}`
  const label = `${scheme}${user}${user && '@'}${where}`
  return { engine: 'postgres', url, label }
}

const silent: StoreEvents = { onLost() {}, onFound() {} }

/** Opens the store, or creates it. Throws `UnusableStore` with one line for the operator. */
export async function openStore(
  location: StoreLocation,
  given: Partial<StoreEvents> = {},
  journaling: Journaling = 'as before',
): Promise<Store> {
  const events = { ...silent, ...given }
  // Loads only the engine in use, so that SQLite does not wait for the driver of PostgreSQL.
  if (location.engine === 'sqlite') {
    const { openConnection, proveAtStart } = await import('./sqlite/connection.ts')
    const { buildSqliteStore } = await import('./sqlite/store.ts')
    const db = openConnection(location.path, events)
    if (journaling !== 'as before') proveAtStart(db)
    return buildSqliteStore(db, { journaling })
  }
  const { openPrimary } = await import('./postgres/primary.ts')
  const { buildPostgresStore } = await import('./postgres/store.ts')
  return buildPostgresStore(await openPrimary(location.url, events, { journaling }))
}

/** Examines a store, which may be in use, without changing it. */
export async function examineStore(location: StoreLocation): Promise<Finding[]> {
  if (location.engine === 'sqlite') {
    const { examineFile } = await import('./sqlite/examine.ts')
    return examineFile(location.path)
  }
  const { examineServer } = await import('./postgres/examine.ts')
  return examineServer(location.url)
}
