const key = 'plant-store-token'

/** Takes the token out of `#token=…`, and out of the address bar. */
export function takeTokenFromAddress(): string | undefined {
  const [, given] = /^#token=(.*)$/s.exec(location.hash) ?? []
  if (given === undefined) return undefined
  history.replaceState(null, '', location.pathname + location.search)
  try {
    return decodeURIComponent(given)
  } catch {
    return given
  }
}

/** The token of this page. In a browser that stores nothing, it lasts until the page is left. */
let held: string | undefined

/** The token of this tab. It survives a reload, and ends with the tab. */
export function recallToken(): string | undefined {
  return (withStorage((storage) => storage.getItem(key) ?? '') ?? held) || undefined
}

export function keepToken(token: string): void {
  held = token
  withStorage((storage) => storage.setItem(key, token))
}

export function forgetToken(): void {
  held = undefined
  withStorage((storage) => storage.removeItem(key))
}

/** A browser set to store nothing throws on any access to the storage. */
function withStorage<Result>(use: (storage: Storage) => Result): Result | undefined {
  try {
    return use(sessionStorage)
  } catch {
    return undefined
  }
}

/** The mistake in a token, if one shows without asking the service. */
export function findTokenFault(token: string): string | undefined {
  if (token === '') return 'Enter a token.'
  if (/^[!-~]+$/.test(token)) return undefined
  return 'A token consists of letters, digits and signs, without spaces and line breaks.'
}
