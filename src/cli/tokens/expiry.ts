const msPerUnit: Record<string, number> = { s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 }

/** The last millisecond that a date can be, in JavaScript and in RFC 3339. */
const endOfTime = Date.UTC(9999, 11, 31)

export const expectedExpiry =
  'a number of s, m, h, d or y such as 90d, or a future date such as 2030-01-31'

/** When a token expires: after a time such as 90d or 1y, or at the start of a day in UTC. */
export function toExpiry(text: string, now: number): number | undefined {
  const time = toTimeAfter(text, now) ?? toDay(text)
  return time !== undefined && time > now && time <= endOfTime ? time : undefined
}

function toTimeAfter(text: string, now: number): number | undefined {
  const [, digits, unit = ''] = /^([1-9]\d{0,4})([smhdy])$/.exec(text) ?? []
  if (digits === undefined) return undefined
  if (unit !== 'y') return now + Number(digits) * (msPerUnit[unit] as number)
  const date = new Date(now)
  return date.setUTCFullYear(date.getUTCFullYear() + Number(digits))
}

function toDay(text: string): number | undefined {
  if (!/^\d{4}-\d{2}-\d{2}$/.test(text)) return undefined
  const time = Date.parse(text)
  // A day like 2030-02-31 would become another one.
  const isReal = !Number.isNaN(time) && new Date(time).toISOString().startsWith(text)
  return isReal ? time : undefined
}
