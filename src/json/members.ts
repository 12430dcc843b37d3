import { Failure } from '../contract/errors.ts'
import { type NotInt64, toInt64 } from '../contract/values.ts'
import { readString, scan } from './scan.ts'

/** A value that fits no member of any shape. Messages only need its kind. */
export interface Misfit {
  readonly kind: 'null' | 'a boolean' | 'a number' | 'an array' | 'an object'
  /** Why a number is not an int64. */
  readonly fault?: NotInt64
}

/** The value of a member: text, an exact int64, or something that fits no shape. */
export type Found = string | bigint | Misfit

/** The wanted members that the object has. */
export type Members = Record<string, Found>

/**
 * Reads the wanted members of a JSON object. The rest of the text is checked for syntax, depth and
 * duplicate names, but no value is built from it.
 */
export function readMembers(text: string, wanted: readonly string[]): Members {
  const members: Members = {}
  scan(text, (name, start, end) => {
    // A duplicate is refused later, at the end of its object.
    if (wanted.includes(name)) members[name] ??= readValue(text, start, end)
  })
  if (text.trimStart().startsWith('{')) return members
  const other = text.trim()
  const kind = toKind(readValue(other, 0, other.length))
  throw new Failure(
    40003,
    `A JSON object is expected, but this is ${kind}. Send {"id": 42, "name": "Monstera"}, for example.`,
  )
}

/** The kind of a value, for messages. */
export function toKind(found: Found): string {
  if (typeof found === 'string') return 'a string'
  if (typeof found === 'bigint') return 'an integer'
  return found.kind
}

function readValue(text: string, start: number, end: number): Found {
  switch (text[start]) {
    case '"':
      return readString(text, start, end)
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
