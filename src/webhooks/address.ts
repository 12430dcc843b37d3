/** The longest URL of a receiver, in bytes. */
const maxUrlBytes = 2_048

/** The mistake in the URL of a receiver, if there is one. It never repeats the URL. */
export function findUrlMistake(text: string): string | undefined {
  if (Buffer.byteLength(text) > maxUrlBytes) return `must have at most ${maxUrlBytes} bytes`
  const url = URL.parse(text)
  // The parser would drop spaces and line ends, and the stored URL would not be the given one.
  if (url === null || /[\s\p{C}]/u.test(text)) return 'must be a whole URL'
  if (url.protocol !== 'http:' && url.protocol !== 'https:') return 'must be http or https'
  if (url.username !== '' || url.password !== '') return 'must not have a user or a password in it'
  return undefined
}
