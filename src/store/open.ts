import type { Store, StoreEvents } from './store.ts'

/** Where the store is, as DATABASE_URL says. A label is what may be shown of it: no password. */
export type StoreLocation =
  | { readonly engine: 'sqlite'; readonly path: string; readonly label: string }
  | { readonly engine: 'postgres'; readonly url: string; readonly label: string }

const postgresPattern =
  /^(postgres(?:ql)?:\/\/)(?:([^:@/?#]*)(?::([^@/?#]*))?@)?([^@/?#]+)(\/[^?#]*)?(?:\?[^#]*)?$/
const hostPattern = /^(?:[\w.-]+|\[[0-9A-Fa-f:.]+\])(?::(\d{1,5}))?$/

/** What DATABASE_URL names, or undefined when it names nothing that we know. */
export function toStoreLocation(url: string): StoreLocation | undefined {
  if (url.includes('\0') || url.startsWith('sqlite://')) return undefined
  const path = /^sqlite:(.+)$/s.exec(url)?.[1]
  if (path !== undefined) return { engine: 'sqlite', path, label: `sqlite:${path}` }
  const parts = postgresPattern.exec(url)
  if (parts === null) return undefined
  const [, scheme, user = '', password = '', hosts = '', database = ''] = parts
  if (!hosts.split(',').every(isHost) || ![user, password, database].every(isDecodable))
    return undefined
  return { engine: 'postgres', url, label: `${scheme}${user}${user && '@'}${hosts}${database}` }
}

function isHost(text: string): boolean {
  const match = hostPattern.exec(text)
  return match !== null && Number(match[1] ?? 0) <= 65_535
}

function isDecodable(text: string): boolean {
  try {
    decodeURIComponent(text)
    return true
  } catch {
    return false
  }
}

const silent: StoreEvents = { onLost() {}, onFound() {} }

/** Opens the store, and makes it if there is none. Throws `UnusableStore` with one line for the operator. */
export async function openStore(
  location: StoreLocation,
  events: StoreEvents = silent,
): Promise<Store> {
  // An engine is loaded when it is used: who stays with SQLite does not wait for the other.
  if (location.engine === 'sqlite') {
    const { openConnection } = await import('./sqlite/connection.ts')
    const { buildSqliteStore } = await import('./sqlite/store.ts')
    return buildSqliteStore(openConnection(location.path))
  }
  const { openPrimary } = await import('./postgres/connection.ts')
  const { buildPostgresStore } = await import('./postgres/store.ts')
  return buildPostgresStore(await openPrimary(location.url, events))
}
