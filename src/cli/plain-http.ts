/** A sentence about what goes to another machine unencrypted; undefined if nothing does. */
export function describePlainHttp(what: string, address: string): string | undefined {
  const url = URL.parse(address)
  if (url?.protocol !== 'http:' || isLoopback(url.hostname)) return undefined
  // The rest of the address may hold a secret.
  return `Warning: ${what} go to ${url.host} over plain HTTP, where others can read them. Use https.`
}

/** Whether this host, as in a URL or without brackets, is the machine itself. */
export function isLoopback(host: string): boolean {
  return /^(([^.]+\.)*localhost|\[?::1\]?|127(\.\d+){3})$/.test(host)
}
