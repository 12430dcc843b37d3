const maxShown = 60
/** What may be a password or a token, in whichever setting it was put by mistake. */
const secretLike = /@|password|plst_/i

/**
 * The end of a sentence about a wrong setting, such as `, not "80O0"`. It is empty where the value
 * may hold a secret.
 */
export function butNot(value: string): string {
  if (secretLike.test(value)) return ''
  const shown = value.length <= maxShown ? value : `${value.slice(0, maxShown)}…`
  return `, not ${JSON.stringify(shown)}`
}
