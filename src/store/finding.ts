/** The result of examining one subject, with advice if something needs attention. */
export interface Finding {
  readonly subject: string
  readonly state: 'ok' | 'to do'
  readonly message: string
}

export function ok(subject: string, message: string): Finding {
  return { subject, state: 'ok', message }
}

export function warning(subject: string, message: string): Finding {
  return { subject, state: 'to do', message }
}

/** The part of the row of a token that says when it ends. */
export interface TokenEnd {
  readonly name: string
  readonly expires_at: number | string | null
  readonly revoked_at: number | string | null
}

const soonMs = 14 * 24 * 60 * 60 * 1000
const maxNames = 5

/** Finds tokens that are about to expire. */
export function examineTokens(tokens: readonly TokenEnd[], now: number): Finding {
  const subject = 'tokens'
  const endOf = ({ expires_at }: TokenEnd) => Number(expires_at ?? Infinity)
  const valid = tokens.filter((token) => token.revoked_at === null && endOf(token) > now)
  const ending = valid.filter((token) => endOf(token) < now + soonMs)
  if (ending.length === 0) return ok(subject, `${valid.length} valid, none expires within 14 days`)
  const names = ending.slice(0, maxNames).map(({ name }) => `"${name}"`)
  const more = ending.length > maxNames ? ` and ${ending.length - maxNames} more` : ''
  return warning(
    subject,
    `${names.join(', ')}${more} will expire within 14 days: make new ones with "token create", and give them to their users`,
  )
}

/** Compares the schema of a store with the one that this release makes. */
export function examineSchema(version: number, known: number): Finding {
  const subject = 'schema'
  if (version === known) return ok(subject, `release ${known} of the schema, the current one`)
  if (version > known) {
    return warning(
      subject,
      `release ${version} of the schema, but this program knows ${known}: use the newer program that wrote it`,
    )
  }
  return warning(
    subject,
    `release ${version} of the schema: make a backup; the next "serve" of this program will bring it to ${known}`,
  )
}

/** Warns if a time in the store lies in the future. */
export function examineClock(newest: number, now: number, toleranceMs = 60_000): Finding {
  const subject = 'clock'
  if (newest <= now + toleranceMs) return ok(subject, 'not behind the times in the store')
  const behind = Math.round((newest - now) / 1000)
  return warning(
    subject,
    `${behind} s behind the newest time in the store: set the clock, and keep it right with NTP`,
  )
}
