const maxShown = 60
/** Looks like a password or a token, which an operator may have put into the wrong setting. */
const secretLike = /@|password|plst_/i

/**
 * The end of a sentence about a wrong setting, such as `, not "80O0"`. Empty if the value may hold
 * a secret.
 */
export function quoteWrong(value: string): string {
  if (secretLike.test(value)) return ''
  const shown = value.length <= maxShown ? value : `${value.slice(0, maxShown)}…`
  return `, not ${JSON.stringify(shown)}`
}
