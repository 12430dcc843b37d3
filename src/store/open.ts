import { quoteWrong } from '../contract/setting-values.ts'
import type { Verdicts } from './finding.ts'
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
  | { readonly engine: 'postgres'; readonly url: string; readonly password?: string }
)

/** The setting that the engines name in their messages. `nameSetting` inserts the one in use. */
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

/** The store at an address, or the mistake in the address. */
export type Located =
  | { readonly location: StoreLocation; readonly mistake?: undefined }
  | { readonly location?: undefined; readonly mistake: string }

/** Finds the store of an address, whose password may be in the environment. */
export function locateStore(
  setting: string,
  url: string,
  env: Readonly<Record<string, string | undefined>>,
): Located {
  const location = toStoreLocation(url, setting)
  if (location === undefined) return { mistake: `${setting} ${describeMistake(url)}.` }
  if (location.engine === 'sqlite' || !env.PGPASSWORD) return { location }
  return { location: { ...location, password: env.PGPASSWORD } }
}

function describeMistake(url: string): string {
  if (!url.startsWith('sqlite://')) {
    const expected =
      'must be sqlite:PATH, sqlite::memory: or postgres://USER:PASSWORD@HOST/DATABASE'
    return `${expected}${quoteWrong(hideRest(url))}`
  }
  const path = url.replace(/^sqlite:\/+/, '')
  return `must not have //: write sqlite:${path} for a path in this folder, or sqlite:/${path}`
}

/** Anything after the scheme may contain a password. */
function hideRest(url: string): string {
  return url.replace(/^(?!sqlite:)([^:]*:).+$/s, '$1…')
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
    const options = { journaling, password: location.password }
    return buildPostgresStore(await openPrimary(location.url, events, options))
  }
  const { openConnection } = await import('./sqlite/connection.ts')
  const { buildSqliteStore } = await import('./sqlite/store.ts')
  return buildSqliteStore(openConnection(location.path, { ...events, journaling }))
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
export async function examineStore(location: StoreLocation) {
  const verdicts = await examineEngine(location).catch(rethrowFor(location))
  return Object.entries(verdicts).map(([subject, { state, message }]) => {
    return { subject, state, message: nameSetting(message, location) }
  })
}

async function examineEngine(location: StoreLocation): Promise<Verdicts> {
  if (location.engine === 'sqlite') {
    const { examineFile } = await import('./sqlite/examine.ts')
    return examineFile(location.path)
  }
  const { examineServer } = await import('./postgres/examine.ts')
  return examineServer(location.url, location.password)
}
