import { openConnection } from './sqlite/connection.ts'
import { buildSqliteStore } from './sqlite/store.ts'
import type { Store } from './store.ts'

/** Where the store is, as DATABASE_URL says. */
export type StoreLocation = { readonly engine: 'sqlite'; readonly path: string }

/** What DATABASE_URL names, or undefined when it names nothing that we know. */
export function toStoreLocation(url: string): StoreLocation | undefined {
  const path = /^sqlite:(.+)$/s.exec(url)?.[1]
  return path === undefined || path.includes('\0') ? undefined : { engine: 'sqlite', path }
}

/** Opens the store, and makes it if there is none. Throws `UnusableStore` with one line for the operator. */
export async function openStore(location: StoreLocation): Promise<Store> {
  return buildSqliteStore(openConnection(location.path))
}
