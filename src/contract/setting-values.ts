/** What settings of the service and flags of commands have in common. */

const msPerUnit: Record<string, number> = { s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 }

/** The milliseconds of a duration such as 30s, 12h or 7d; undefined for any other text. */
export function toMs(text: string): number | undefined {
  const [, count, unit = ''] = /^(\d{1,6})([smhd])$/.exec(text) ?? []
  return count === undefined ? undefined : Number(count) * (msPerUnit[unit] as number)
}

/** A whole number within these bounds; undefined for any other text. */
export function toNumber(text: string, min: number, max: number): number | undefined {
  const number = /^\d{1,9}$/.test(text) ? Number(text) : Number.NaN
  return number >= min && number <= max ? number : undefined
}

/** Whether this host, as in a URL or without brackets, is the machine itself. */
export function isLoopback(host: string): boolean {
  return /^(([^.]+\.)*localhost|\[?::1\]?|127(\.\d+){3})$/.test(host)
}

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
