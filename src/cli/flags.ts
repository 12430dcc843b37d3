import { toMs } from '../contract/durations.ts'
import { toPathId } from '../contract/values.ts'

/** The address of a store in memory. */
export const inMemory = 'sqlite::memory:'

/** Reads the text of a flag; undefined if it is not what is expected. */
interface Kind<Value> {
  readonly expected: string
  read(text: string): Value | undefined
}

/** A flag of a command, whose value the command gets. */
export interface Flag<Value> {
  /** The flag as the help shows it, such as `--name <name>`. */
  readonly form: string
  readonly about: string
  readonly kind?: Kind<Value>
  readonly isRequired?: boolean
  /** What to use instead of a flag that only releases before 2.0.0 have. The help omits it. */
  readonly gone?: string
}

export type Flags = Readonly<Record<string, Flag<unknown>>>

/** The values of flags, which are undefined or false where they are not given. */
export type ValuesOf<Table extends Flags> = {
  readonly [Name in keyof Table]: Table[Name] extends Flag<infer Value> ? Value : never
}

/** A flag with a value of some kind. */
export function flag<Value>(
  form: string,
  about: string,
  kind: Kind<Value>,
): Flag<Value | undefined> {
  return { form, about, kind }
}

/** A flag with any text. */
export function text(form: string, about: string): Flag<string | undefined> {
  return { form, about }
}

export function required<Value>(optional: Flag<Value | undefined>): Flag<Value> {
  return { ...(optional as Flag<Value>), isRequired: true }
}

export function toggle(form: string, about: string): Flag<boolean | undefined> {
  return { form, about }
}

/** The name of a flag without its dashes and its value. */
export function toLongName({ form }: Flag<unknown>): string {
  return form.replace(/^--| .*/g, '')
}

/** One of these names. */
export function oneOf<Name extends string>(all: readonly Name[]): Kind<Name> {
  return {
    expected: `be ${all.slice(0, -1).join(', ')} or ${all.at(-1)}`,
    read: (text) => all.find((name) => name === text),
  }
}

/** One or more of these names, separated by commas, in the order of all of them. */
export function names<Name extends string>(all: readonly Name[]): Kind<Name[]> {
  return {
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
    expected: `be a number${of} from ${min} to ${max}`,
    read(text) {
      const number = /^\d{1,9}$/.test(text) ? Number(text) : Number.NaN
      return number >= min && number <= max ? number : undefined
    },
  }
}

export function duration(example: string): Kind<number> {
  return { expected: `be a number of s, m, h or d, such as ${example}`, read: toMs }
}

export const plantId: Kind<bigint> = { expected: 'be the id of a plant', read: toPathId }

export const processId: Kind<number> = {
  expected: 'be the id of a process',
  read: (text) => (/^[1-9]\d{0,9}$/.test(text) ? Number(text) : undefined),
}

const maxNameLength = 200

export const tokenName: Kind<string> = {
  expected: `have 1 to ${maxNameLength} printable characters`,
  read: (text) => (/^\P{C}+$/u.test(text) && text.length <= maxNameLength ? text : undefined),
}

/** When a token expires: after a time such as 90d or 1y, or at the start of a day in UTC. */
export const expiry: Kind<string> = {
  expected: 'be a number of s, m, h, d or y such as 90d, or a future date such as 2030-01-31',
  read: (text) => (toExpiry(text, Date.now()) === undefined ? undefined : text),
}

/** The last millisecond that a date can be, in JavaScript and in RFC 3339. */
const endOfTime = Date.UTC(9999, 11, 31)

export function toExpiry(text: string, now: number): number | undefined {
  const time = toTimeAfter(text, now) ?? toDay(text)
  return time !== undefined && time > now && time <= endOfTime ? time : undefined
}

function toTimeAfter(text: string, now: number): number | undefined {
  if (!/^[1-9]\d{0,4}[smhdy]$/.test(text)) return undefined
  const ms = toMs(text)
  if (ms !== undefined) return now + ms
  const date = new Date(now)
  return date.setUTCFullYear(date.getUTCFullYear() + Number.parseInt(text, 10))
}

function toDay(text: string): number | undefined {
  if (!/^\d{4}-\d{2}-\d{2}$/.test(text)) return undefined
  const time = Date.parse(text)
  // A day like 2030-02-31 would become another one.
  const isReal = !Number.isNaN(time) && new Date(time).toISOString().startsWith(text)
  return isReal ? time : undefined
}
