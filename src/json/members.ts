import { Failure } from '../contract/errors.ts'
import { type NotInt64, toInt64 } from '../contract/int64.ts'
import { readString, scan } from './scan.ts'

/** A value that no member of a shape can have. Messages need its kind and nothing else of it. */
export interface Misfit {
  readonly kind: 'null' | 'a boolean' | 'a number' | 'an array' | 'an object'
  /** Why a number is no int64. */
  readonly fault?: NotInt64
}

/** A member as it was found: text, an exact int64, or something that fits no shape. */
export type Found = string | bigint | Misfit

/** The members that were asked for and found. */
export type Members = Record<string, Found>

/**
 * Reads the wanted members of a JSON object. Everything else in the text is checked for syntax,
 * depth and duplicates, and no value is built of it.
 */
export function readMembers(text: string, wanted: readonly string[]): Members {
  const members: Members = {}
  scan(text, (name, start, end) => {
    if (wanted.includes(name)) members[name] = readValue(text, start, end)
  })
  if (text.trimStart().startsWith('{')) return members
  const other = text.trim()
  const kind = toKind(readValue(other, 0, other.length))
  throw new Failure(
    40003,
    `A JSON object is expected, but this is ${kind}. Send {"id": 42, "name": "Monstera"}, for example.`,
  )
}

/** The kind of a value, as messages name it. */
export function toKind(found: Found): string {
  if (typeof found === 'string') return 'a string'
  if (typeof found === 'bigint') return 'an integer'
  return found.kind
}

function readValue(text: string, start: number, end: number): Found {
  switch (text[start]) {
    case '"':
      return readText(text, start, end)
    case '{':
      return { kind: 'an object' }
    case '[':
      return { kind: 'an array' }
    case 't':
    case 'f':
      return { kind: 'a boolean' }
    case 'n':
      return { kind: 'null' }
    default:
      return readNumber(text.slice(start, end))
  }
}

function readNumber(digits: string): bigint | Misfit {
  const number = toInt64(digits)
  return typeof number === 'bigint' ? number : { kind: 'a number', fault: number }
}

/** A body that is longer should not stay in memory for one of its members. */
const maxKeptCharacters = 4096

/** The text of a member: a copy if a slice would keep a long body in memory. */
function readText(text: string, start: number, end: number): string {
  return text.length > maxKeptCharacters
    ? JSON.parse(text.slice(start, end))
    : readString(text, start, end)
}
