import type { Store, StoreEvents } from './store.ts'

/** Where the store is, as DATABASE_URL says. */
export type StoreLocation =
  | { readonly engine: 'sqlite'; readonly path: string }
  | { readonly engine: 'postgres'; readonly url: string }

/** What DATABASE_URL names, or undefined when it names nothing that we know. */
export function toStoreLocation(url: string): StoreLocation | undefined {
  if (url.includes('\0')) return undefined
  const path = /^sqlite:(.+)$/s.exec(url)?.[1]
  if (path !== undefined) return { engine: 'sqlite', path }
  return /^postgres(?:ql)?:\/\/[^/?]+/.test(url) ? { engine: 'postgres', url } : undefined
}

/** The location as it may be shown: without a password. */
export function toLabel(location: StoreLocation): string {
  if (location.engine === 'sqlite') return `sqlite:${location.path}`
  return location.url.replace(
    /^(\w+:\/\/)(?:([^:@/]*)(?::[^@/]*)?@)?([^?]*).*$/s,
    (_, scheme, user, rest) => `${scheme}${user === undefined ? '' : `${user}@`}${rest}`,
  )
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
