import type { Row } from './steps.ts'
import { schemaVersion } from './tables.ts'

/** The result of an examination, with advice if something needs attention. */
export interface Verdict {
  readonly state: 'ok' | 'to do'
  readonly message: string
}

/** The verdicts on some subjects, in their order. */
export type Verdicts = Readonly<Record<string, Verdict>>

export function ok(message: string): Verdict {
  return { state: 'ok', message }
}

export function toDo(message: string): Verdict {
  return { state: 'to do', message }
}

const soonMs = 14 * 24 * 60 * 60 * 1000
const maxNames = 5

/** Finds tokens that are about to expire: rows with name, `expires_at` and `revoked_at`. */
export function examineTokens(tokens: readonly Row[], now: number): Verdict {
  const endOf = ({ expires_at }: Row) => Number(expires_at ?? Infinity)
  const valid = tokens.filter((token) => token.revoked_at === null && endOf(token) > now)
  const ending = valid.filter((token) => endOf(token) < now + soonMs)
  if (ending.length === 0) return ok(`${valid.length} valid, none expires within 14 days`)
  const names = ending.slice(0, maxNames).map(({ name }) => `"${name}"`)
  const more = ending.length > maxNames ? ` and ${ending.length - maxNames} more` : ''
  return toDo(
    `${names.join(', ')}${more} will expire within 14 days: make new ones with "token create", and give them to their users`,
  )
}

/** Compares the schema of a store with the one that this release makes. */
export function examineSchema(version: number): Verdict {
  const known = schemaVersion
  if (version === 0) return toDo('no store was made yet: start the service')
  if (version === known) return ok(`release ${known} of the schema, the current one`)
  return toDo(
    version > known
      ? `release ${version} of the schema, but this program knows ${known}: use the newer program that wrote it`
      : `release ${version} of the schema: make a backup; the next "serve" of this program will bring it to ${known}`,
  )
}

/** Warns if a time in the store lies in the future. */
export function examineClock(newest: number, now: number, toleranceMs = 60_000): Verdict {
  if (newest <= now + toleranceMs) return ok('not behind the times in the store')
  const behind = Math.round((newest - now) / 1000)
  return toDo(
    `${behind} s behind the newest time in the store: set the clock, and keep it right with NTP`,
  )
}
