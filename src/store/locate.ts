import { quoteWrong } from '../contract/wrong-value.ts'
import { type StoreLocation, toStoreLocation } from './open.ts'
import { withPassword } from './postgres/address.ts'

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
  return { location: { ...location, url: withPassword(location.url, env.PGPASSWORD) } }
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
