import { delimiterNames, delimiters } from '../contract/formats.ts'
import { toMs, toNumber } from '../contract/setting-values.ts'
import { toPathId } from '../contract/values.ts'

/** The address of a store in memory. */
export const inMemory = 'sqlite::memory:'

/** Reads the text of a flag; undefined if it is not what is expected. */
interface Kind<Value> {
  /** What the help shows for it, such as `<name>`. */
  readonly form: string
  readonly expected: string
  read(text: string): Value | undefined
}

/** A flag of a command, whose value the command gets. */
export interface Flag<Value> {
  readonly about: string
  /** The kind of its value; none if it has no value. */
  readonly kind?: Kind<Value>
  readonly isRequired?: boolean
}

/** Flags by their names. */
export type Flags = Readonly<Record<string, Flag<unknown>>>

/** The values of flags, which are undefined or false where they are not given. */
export type ValuesOf<Table extends Flags> = {
  readonly [Name in keyof Table]: Table[Name] extends Flag<infer Value> ? Value : never
}

/** A flag with a value of some kind. */
export function flag<Value>(about: string, kind: Kind<Value>): Flag<Value | undefined> {
  return { about, kind }
}

/** A flag with any text. */
export function text(form: string, about: string): Flag<string | undefined> {
  return flag(about, { form, expected: 'be text', read: (given) => given })
}

export function required<Value>(optional: Flag<Value | undefined>): Flag<Value> {
  return { ...(optional as Flag<Value>), isRequired: true }
}

export function toggle(about: string): Flag<boolean | undefined> {
  return { about }
}

/** One of these names. */
export function oneOf<Name extends string>(form: string, all: readonly Name[]): Kind<Name> {
  return {
    form,
    expected: `be ${all.slice(0, -1).join(', ')} or ${all.at(-1)}`,
    read: (text) => all.find((name) => name === text),
  }
}

/** One or more of these names, separated by commas, in the order of all of them. */
export function someOf<Name extends string>(form: string, all: readonly Name[]): Kind<Name[]> {
  return {
    form,
    expected: `be one or more of ${all.join(', ')}, separated by commas`,
    read(text) {
      const wanted = text.split(',').map((part) => part.trim())
      const isKnown = wanted.every((name) => (all as readonly string[]).includes(name))
      return isKnown ? all.filter((name) => wanted.includes(name)) : undefined
    },
  }
}

export function numberFrom(min: number, max: number, of = ''): Kind<number> {
  return {
    form: '<number>',
    expected: `be a number${of} from ${min} to ${max}`,
    read: (text) => toNumber(text, min, max),
  }
}

export function duration(example: string): Kind<number> {
  const expected = `be a number of s, m, h or d, such as ${example}`
  return { form: '<time>', expected, read: toMs }
}

export const plantId: Kind<bigint> = {
  form: '<id>',
  expected: 'be the id of a plant',
  read: toPathId,
}

/** What separates the fields of CSV, by its name or as it is. */
export const separator: Kind<string> = {
  form: '<name>',
  expected: 'be one character, or comma, semicolon or tab; no quote and no newline',
  read(text) {
    const name = delimiterNames.find((one) => one === text)
    if (name !== undefined) return delimiters[name]
    return text.length === 1 && !/["\r\n]/.test(text) ? text : undefined
  },
}

/** The same, of those that a spreadsheet knows. */
export const delimiter: Kind<string> = {
  form: '<name>',
  expected: 'be comma, semicolon or tab',
  read: (text) => Object.values<string>(delimiters).find((one) => one === separator.read(text)),
}

const maxNameLength = 200

export const tokenName: Kind<string> = {
  form: '<name>',
  expected: `have 1 to ${maxNameLength} printable characters`,
  read: (text) => (/^\P{C}+$/u.test(text) && text.length <= maxNameLength ? text : undefined),
}

/** When a token expires: after a time such as 90d or 1y, or at the start of a day in UTC. */
export const expiry: Kind<number> = {
  form: '<time>',
  expected: 'be a number of s, m, h, d or y such as 90d, or a future date such as 2030-01-31',
  read: (text) => toExpiry(text, Date.now()),
}

/** The last millisecond that a date can be, in JavaScript and in RFC 3339. */
const endOfTime = Date.UTC(9999, 11, 31)

export function toExpiry(text: string, now: number): number | undefined {
  const ms = toMs(text)
  const [, years] = /^(\d{1,5})y$/.exec(text) ?? []
  const date = new Date(now)
  if (years !== undefined) date.setUTCFullYear(date.getUTCFullYear() + Number(years))
  else date.setTime(ms === undefined ? toDay(text) : now + ms)
  const time = date.getTime()
  return time > now && time <= endOfTime ? time : undefined
}

/** The start of a day in UTC; not a number for any other text. */
function toDay(text: string): number {
  const time = /^\d{4}-\d{2}-\d{2}$/.test(text) ? Date.parse(text) : Number.NaN
  // A day like 2030-02-31 would become another one.
  const isReal = !Number.isNaN(time) && new Date(time).toISOString().startsWith(text)
  return isReal ? time : Number.NaN
}
