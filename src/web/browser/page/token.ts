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

/** The token of this tab. It survives a reload, and ends with the tab. */
export function recallToken(): string | undefined {
  return sessionStorage.getItem(key) ?? undefined
}

export function keepToken(token: string): void {
  sessionStorage.setItem(key, token)
}

export function forgetToken(): void {
  sessionStorage.removeItem(key)
}

/** What is wrong with a token, as far as that can be told without asking the service. */
export function findTokenFault(token: string): string | undefined {
  if (token === '') return 'Enter a token.'
  if (/^[!-~]+$/.test(token)) return undefined
  return 'A token consists of letters, digits and signs, without spaces and line breaks.'
}
