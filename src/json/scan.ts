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

const space = new Set(Array.from(' \t\r\n', (character) => character.charCodeAt(0)))
const colon = 0x3a
const comma = 0x2c
const lineFeed = 0x0a
const quote = 0x22
const openBracket = 0x5b
const closeBracket = 0x5d
const openBrace = 0x7b
const closeBrace = 0x7d

const string = String.raw`"[^"\\\x00-\x1f]*(?:\\(?:["\\/bfnrt]|u[0-9A-Fa-f]{4})[^"\\\x00-\x1f]*)*"`
const number = String.raw`-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?`
/** A value that is neither an object nor an array. */
const scalar = new RegExp(`${string}|${number}|true|false|null`, 'y')

function skipSpace(text: string, start: number): number {
  let at = start
  while (space.has(text.charCodeAt(at))) at++
  return at
}

/** Skips a value. An object or array in it opens at this depth. */
function skipValue(text: string, start: number, depth: number): number {
  const unit = text.charCodeAt(start)
  if (unit === openBrace) return skipObject(text, start, depth)
  if (unit === openBracket) return skipArray(text, start, depth)
  scalar.lastIndex = start
  if (scalar.test(text)) return scalar.lastIndex
  throw unit === quote
    ? invalidJson(text, start, 'unclosed string, wrong escape or control character in the string')
    : expected(text, start, 'a value')
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
    const nameEnd = skipValue(text, at, depth)
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

/** The index of the first name that an earlier one equals, or -1. */
function findRepeated(names: readonly string[]): number {
  const seen = new Set<string>()
  return names.findIndex((name) => {
    if (seen.has(name)) return true
    seen.add(name)
    return false
  })
}

/** The value of a string between its start and its end. */
export function readString(text: string, start: number, end: number): string {
  const content = text.slice(start + 1, end - 1)
  return content.includes('\\') ? JSON.parse(text.slice(start, end)) : content
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
