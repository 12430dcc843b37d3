import { Failure } from '../contract/errors.ts'
import { limits } from '../contract/limits.ts'

/**
 * A scanner for JSON. It checks syntax, depth and duplicate names, and locates the members of the
 * outermost object without building any value. So the cost of a hostile text is linear in its
 * length, and numbers keep their digits.
 *
 * Each function takes the index at which something begins and returns the index after it, or throws
 * a `Failure` that says what is wrong, and where. The depth is bounded, and so is the recursion.
 */

/** Called for each member of the outermost object with its name and the range of its value. */
type OnMember = (name: string, start: number, end: number) => void

/** Scans a text with exactly one value. */
export function scan(text: string, onMember: OnMember): void {
  const start = skipSpace(text, 0)
  const end =
    text.charCodeAt(start) === openBrace
      ? skipObject(text, start, 1, onMember)
      : skipValue(text, start, 1)
  const rest = skipSpace(text, end)
  if (rest < text.length) throw expected(text, rest, 'the end of the text')
}

// Not the properties of one object, which are slow to read until V8 optimizes the code.
const tab = 0x09
const lineFeed = 0x0a
const carriageReturn = 0x0d
const space = 0x20
const quote = 0x22
const plus = 0x2b
const comma = 0x2c
const minus = 0x2d
const point = 0x2e
const zero = 0x30
const nine = 0x39
const colon = 0x3a
const openBracket = 0x5b
const backslash = 0x5c
const closeBracket = 0x5d
const smallA = 0x61
const smallE = 0x65
const smallF = 0x66
const smallN = 0x6e
const smallT = 0x74
const smallU = 0x75
const openBrace = 0x7b
const closeBrace = 0x7d

function skipSpace(text: string, start: number): number {
  let at = start
  for (;;) {
    const unit = text.charCodeAt(at)
    if (unit > space || !isSpace(unit)) return at
    at++
  }
}

function isSpace(unit: number): boolean {
  return unit === space || unit === lineFeed || unit === carriageReturn || unit === tab
}

/** Skips a value. An object or array in it opens at this depth. */
function skipValue(text: string, start: number, depth: number): number {
  switch (text.charCodeAt(start)) {
    case quote:
      return skipString(text, start)
    case openBrace:
      return skipObject(text, start, depth)
    case openBracket:
      return skipArray(text, start, depth)
    case smallT:
      return skipWord(text, start, 'true')
    case smallF:
      return skipWord(text, start, 'false')
    case smallN:
      return skipWord(text, start, 'null')
    default:
      return skipNumber(text, start)
  }
}

function skipObject(text: string, start: number, depth: number, onMember?: OnMember): number {
  if (depth > limits.jsonDepth) throw tooDeep(text, start)
  let at = skipSpace(text, start + 1)
  if (text.charCodeAt(at) === closeBrace) return at + 1
  let expectation = 'a member name in double quotes or "}"'
  const names: string[] = []
  const starts: number[] = []
  for (;;) {
    if (text.charCodeAt(at) !== quote) throw expected(text, at, expectation)
    const nameEnd = skipString(text, at)
    const name = readString(text, at, nameEnd)
    names.push(name)
    starts.push(at)
    at = skipSpace(text, nameEnd)
    if (text.charCodeAt(at) !== colon) throw expected(text, at, '":"')
    const valueStart = skipSpace(text, at + 1)
    const valueEnd = skipValue(text, valueStart, depth + 1)
    onMember?.(name, valueStart, valueEnd)
    at = skipSpace(text, valueEnd)
    const unit = text.charCodeAt(at)
    if (unit === closeBrace) break
    if (unit !== comma) throw expected(text, at, '"," or "}"')
    at = skipSpace(text, at + 1)
    expectation = 'a member name in double quotes'
  }
  const repeated = findRepeated(names)
  if (repeated === -1) return at + 1
  throw duplicateMember(text, starts[repeated] as number, names[repeated] as string)
}

function skipArray(text: string, start: number, depth: number): number {
  if (depth > limits.jsonDepth) throw tooDeep(text, start)
  let at = skipSpace(text, start + 1)
  if (text.charCodeAt(at) === closeBracket) return at + 1
  for (;;) {
    at = skipSpace(text, skipValue(text, at, depth + 1))
    const unit = text.charCodeAt(at)
    if (unit === closeBracket) return at + 1
    if (unit !== comma) throw expected(text, at, '"," or "]"')
    at = skipSpace(text, at + 1)
  }
}

function tooDeep(text: string, at: number): Failure {
  return invalidJson(text, at, `nesting deeper than ${limits.jsonDepth} levels`)
}

function findRepeated(names: readonly string[]): number {
  const seen = new Set<string>()
  return names.findIndex((name) => seen.size === seen.add(name).size)
}

/** The value of a string between its start and its end. */
export function readString(text: string, start: number, end: number): string {
  const content = text.slice(start + 1, end - 1)
  return content.includes('\\') ? JSON.parse(text.slice(start, end)) : content
}

function skipString(text: string, start: number): number {
  for (let at = start + 1; ; ) {
    const unit = text.charCodeAt(at)
    if (unit === quote) return at + 1
    if (unit === backslash) at = skipEscape(text, at)
    else if (unit >= space) at++
    else if (at >= text.length) throw expected(text, at, 'the closing quote of a string')
    else throw invalidJson(text, at, 'unescaped control character in a string')
  }
}

function skipEscape(text: string, start: number): number {
  const escaped = start + 1
  const unit = text.charCodeAt(escaped)
  if (unit === smallU) return skipHexDigits(text, escaped + 1)
  if (escapes.has(unit)) return escaped + 1
  throw expected(text, escaped, 'one of "\\/bfnrtu after a backslash')
}

const escapes = new Set(Array.from('"\\/bfnrt', (character) => character.charCodeAt(0)))

function skipHexDigits(text: string, start: number): number {
  const end = start + 4
  for (let at = start; at < end; at++) {
    if (!isHexDigit(text.charCodeAt(at))) throw expected(text, at, 'four hexadecimal digits')
  }
  return end
}

function isHexDigit(unit: number): boolean {
  const small = toSmall(unit)
  return isDigit(unit) || (small >= smallA && small <= smallF)
}

/** A letter in lower case. A capital differs from it in one bit. */
function toSmall(unit: number): number {
  return unit | 0x20
}

function skipWord(text: string, start: number, word: string): number {
  if (text.startsWith(word, start)) return start + word.length
  throw expected(text, start, 'a value')
}

function skipNumber(text: string, start: number): number {
  const first = text.charCodeAt(start)
  if (first !== minus && !isDigit(first)) throw expected(text, start, 'a value')
  let at = first === minus ? start + 1 : start
  at = text.charCodeAt(at) === zero ? at + 1 : skipDigits(text, at)
  if (text.charCodeAt(at) === point) at = skipDigits(text, at + 1)
  if (toSmall(text.charCodeAt(at)) !== smallE) return at
  const sign = text.charCodeAt(at + 1)
  return skipDigits(text, sign === plus || sign === minus ? at + 2 : at + 1)
}

/** Skips one digit or more. */
function skipDigits(text: string, start: number): number {
  let at = start
  while (isDigit(text.charCodeAt(at))) at++
  if (at === start) throw expected(text, at, 'a digit')
  return at
}

function isDigit(unit: number): boolean {
  return unit >= zero && unit <= nine
}

const maxShown = 40

/** The text is not JSON, or not JSON that we accept. */
function invalidJson(text: string, at: number, problem: string): Failure {
  return new Failure(40001, `Invalid JSON: ${problem} at ${toLineAndColumn(text, at)}.`)
}

/** The grammar expects `what`, but the text has something else. */
function expected(text: string, at: number, what: string): Failure {
  const actual = at < text.length ? `found ${toPrintable(text, at)}` : 'the text ends'
  return invalidJson(text, at, `expected ${what}, but ${actual}`)
}

/** The object already has a member with this name. */
function duplicateMember(text: string, at: number, name: string): Failure {
  const shown = name.length > maxShown ? `${name.slice(0, maxShown)}…` : name
  return invalidJson(text, at, `duplicate member ${JSON.stringify(shown)}`)
}

/** Lines and columns count from 1. The first line is not mentioned: most texts have only one. */
function toLineAndColumn(text: string, at: number): string {
  const lineStart = at === 0 ? 0 : text.lastIndexOf('\n', at - 1) + 1
  const column = `column ${at - lineStart + 1}`
  return lineStart === 0 ? column : `line ${countLines(text, lineStart) + 1}, ${column}`
}

/** How many lines end before a position. */
function countLines(text: string, end: number): number {
  let lines = 0
  for (let at = 0; at < end; at++) if (text.charCodeAt(at) === lineFeed) lines++
  return lines
}

/** One character, in a form that can be printed anywhere. */
function toPrintable(text: string, at: number): string {
  const code = text.codePointAt(at) as number
  if (code === 0xfeff) return 'a byte order mark'
  const character = String.fromCodePoint(code)
  if (!/[\p{C}\p{Z}]/u.test(character)) return JSON.stringify(character)
  return `U+${code.toString(16).toUpperCase().padStart(4, '0')}`
}
