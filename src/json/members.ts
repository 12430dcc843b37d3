import { Failure } from '../contract/errors.ts'
import { type NotInt64, toInt64 } from '../contract/int64.ts'
import { expected } from './invalid.ts'
import { addName, buildNames, findName } from './names.ts'
import {
  findFirstMember,
  findMemberValue,
  findNextMember,
  isMember,
  skipSpace,
  skipValue,
} from './scan.ts'
import { readString } from './strings.ts'

/** A value that no member of a shape can have. Messages need its kind and nothing else of it. */
export interface Misfit {
  readonly kind: 'null' | 'a boolean' | 'a number' | 'an array' | 'an object'
  /** Why a number is no int64. */
  readonly fault?: NotInt64
}

/** What a member was found to be: text, an exact int64, or something that fits no shape. */
export type Found = string | bigint | Misfit

/** The members that were asked for and found. */
export type Members = Record<string, Found>

/**
 * Reads the wanted members of a JSON object. Everything else in the text is checked for syntax,
 * depth and duplicates, and no value is built of it.
 */
export function readMembers(text: string, wanted: readonly string[]): Members {
  const start = skipSpace(text, 0)
  const members: Members = {}
  const isObject = text.startsWith('{', start)
  const end = isObject ? readObject(text, start, wanted, members) : skipValue(text, start, 0)
  const rest = skipSpace(text, end)
  if (rest < text.length) throw expected(text, rest, 'the end of the text')
  if (isObject) return members
  const kind = toKind(readValue(text, start, end))
  throw new Failure(40003, `A JSON object is expected, but this is ${kind}.`)
}

/** Puts the wanted members of the outermost object into `members`. Returns where it ends. */
function readObject(
  text: string,
  start: number,
  wanted: readonly string[],
  members: Members,
): number {
  const names = buildNames()
  let at = findFirstMember(text, start)
  while (isMember(text, at)) {
    const nameEnd = addName(names, text, at)
    const valueStart = findMemberValue(text, nameEnd)
    const valueEnd = skipValue(text, valueStart, 1)
    const name = findName(wanted, text, at, nameEnd)
    if (name !== undefined) members[name] = readValue(text, valueStart, valueEnd)
    at = findNextMember(text, valueEnd)
  }
  return at + 1
}

/** What a value is called in messages. */
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

const longText = 4096

/** The text of a member: a copy, because a slice would keep the whole body in memory. */
function readText(text: string, start: number, end: number): string {
  return text.length > longText ? JSON.parse(text.slice(start, end)) : readString(text, start, end)
}
