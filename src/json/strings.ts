import type { Failure } from '../contract/errors.ts'
import {
  backslash,
  isDigit,
  letterA,
  letterF,
  letterU,
  quote,
  space,
  toLowerCase,
  zero,
} from './characters.ts'
import { expected, invalidJson } from './invalid.ts'

/** Skips a string: from its opening quote to the position after the closing one. */
export function skipString(text: string, start: number): number {
  let at = start + 1
  for (;;) {
    const code = text.charCodeAt(at)
    if (code === quote) return at + 1
    if (code === backslash) {
      decodeAt(text, at)
      at += widthAt(text, at)
    } else if (code >= space) at++
    else throw brokenString(text, at)
  }
}

/** A string that does not end, or has a character that must be escaped. */
export function brokenString(text: string, at: number): Failure {
  if (at >= text.length) return expected(text, at, 'the closing quote of a string')
  return invalidJson(text, at, 'unescaped control character in a string')
}

/** The value of a string that was skipped before. */
export function readString(text: string, start: number, end: number): string {
  const content = text.slice(start + 1, end - 1)
  return content.includes('\\') ? JSON.parse(text.slice(start, end)) : content
}

/** The code unit at a position in a string, be it written as itself or as an escape. */
export function decodeAt(text: string, at: number): number {
  const code = text.charCodeAt(at)
  if (code !== backslash) return code
  const escaped = text.charCodeAt(at + 1)
  if (escaped === letterU) return decodeHex(text, at + 2)
  const character = escapes.get(escaped)
  if (character !== undefined) return character
  throw expected(text, at + 1, 'one of "\\/bfnrtu after a backslash')
}

/** How many characters the code unit at a position takes. */
export function widthAt(text: string, at: number): number {
  if (text.charCodeAt(at) !== backslash) return 1
  return text.charCodeAt(at + 1) === letterU ? 6 : 2
}

const escapes: ReadonlyMap<number, number> = new Map(
  Object.entries({
    '"': '"',
    '\\': '\\',
    '/': '/',
    b: '\b',
    f: '\f',
    n: '\n',
    r: '\r',
    t: '\t',
  }).map(([escaped, character]) => [escaped.charCodeAt(0), character.charCodeAt(0)]),
)

function decodeHex(text: string, start: number): number {
  let value = 0
  for (let at = start; at < start + 4; at++) {
    const code = text.charCodeAt(at)
    const letter = toLowerCase(code)
    if (isDigit(code)) value = value * 16 + code - zero
    else if (letter >= letterA && letter <= letterF) value = value * 16 + letter - letterA + 10
    else throw expected(text, at, 'four hexadecimal digits')
  }
  return value
}
