import { limits } from '../contract/limits.ts'
import {
  carriageReturn,
  closeBrace,
  closeBracket,
  colon,
  comma,
  dot,
  isDigit,
  letterE,
  lineFeed,
  minus,
  openBrace,
  openBracket,
  plus,
  quote,
  space,
  tab,
  toLowerCase,
  zero,
} from './characters.ts'
import { expected, invalidJson } from './invalid.ts'
import { addName, buildNames, type Names } from './names.ts'
import { skipString } from './strings.ts'

// Each function takes a position in the text and returns a later one, or throws. None builds a
// value, so that hostile JSON costs no more than its length.

/** Skips any value. `depth` counts the containers around it. */
export function skipValue(text: string, start: number, depth: number): number {
  const code = text.charCodeAt(start)
  if (code === openBrace || code === openBracket) return skipContainer(text, start, depth)
  return skipScalar(text, start)
}

/**
 * Skips an object or an array with all that it contains, in one loop: V8 takes longer to compile
 * functions that call each other than they take to skip a megabyte.
 */
function skipContainer(text: string, start: number, depth: number): number {
  /** The open containers from the outside in: the names of an object, nothing of an array. */
  const open: (Names | undefined)[] = []
  let at = start
  for (;;) {
    const code = text.charCodeAt(at)
    if (code === openBrace) {
      requireDepth(text, at, depth + open.push(buildNames()))
      at = findFirstMember(text, at)
    } else if (code === openBracket) {
      requireDepth(text, at, depth + open.push(undefined))
      at = findFirstItem(text, at)
    } else at = findNext(text, skipScalar(text, at), open)

    while (isClosing(text, at)) {
      open.pop()
      if (open.length === 0) return at + 1
      at = findNext(text, at + 1, open)
    }
    const names = open[open.length - 1]
    if (names !== undefined) at = findMemberValue(text, addName(names, text, at))
  }
}

/** Where the innermost container goes on or closes; `start` is the end of a value in it. */
function findNext(text: string, start: number, open: readonly (Names | undefined)[]): number {
  const isArray = open[open.length - 1] === undefined
  return isArray ? findNextItem(text, start) : findNextMember(text, start)
}

/** Where the first item of an array is or, if it has none, its closing bracket. */
function findFirstItem(text: string, start: number): number {
  const at = skipSpace(text, start + 1)
  if (text.charCodeAt(at) === closeBrace) throw expected(text, at, 'a value')
  return at
}

/** Where the next item of an array is, or its closing bracket; `start` is the end of an item. */
function findNextItem(text: string, start: number): number {
  const end = skipSpace(text, start)
  const code = text.charCodeAt(end)
  if (code === closeBracket) return end
  if (code !== comma) throw expected(text, end, '"," or "]"')
  const at = skipSpace(text, end + 1)
  if (isClosing(text, at)) throw expected(text, at, 'a value')
  return at
}

/** Whether a container closes here. */
function isClosing(text: string, at: number): boolean {
  const code = text.charCodeAt(at)
  return code === closeBrace || code === closeBracket
}

function skipScalar(text: string, start: number): number {
  const code = text.charCodeAt(start)
  if (code === quote) return skipString(text, start)
  if (code === minus || isDigit(code)) return skipNumber(text, start)
  if (text.startsWith('true', start)) return start + 4
  if (text.startsWith('false', start)) return start + 5
  if (text.startsWith('null', start)) return start + 4
  throw expected(text, start, 'a value')
}

/** Where the first member of an object is or, if it has none, its closing brace. */
export function findFirstMember(text: string, start: number): number {
  const at = skipSpace(text, start + 1)
  const code = text.charCodeAt(at)
  if (code === quote || code === closeBrace) return at
  throw expected(text, at, 'a member name in double quotes or "}"')
}

/** Where the next member is, or the closing brace; `start` is the end of a member's value. */
export function findNextMember(text: string, start: number): number {
  const end = skipSpace(text, start)
  const code = text.charCodeAt(end)
  if (code === closeBrace) return end
  if (code !== comma) throw expected(text, end, '"," or "}"')
  const at = skipSpace(text, end + 1)
  if (text.charCodeAt(at) === quote) return at
  throw expected(text, at, 'a member name in double quotes')
}

/** Where the value of a member is; `start` is the end of its name. */
export function findMemberValue(text: string, start: number): number {
  const at = skipSpace(text, start)
  if (text.charCodeAt(at) !== colon) throw expected(text, at, '":"')
  return skipSpace(text, at + 1)
}

/** Whether a member is here, and not the closing brace. */
export function isMember(text: string, at: number): boolean {
  return text.charCodeAt(at) === quote
}

function skipNumber(text: string, start: number): number {
  let at = text.charCodeAt(start) === minus ? start + 1 : start
  at = text.charCodeAt(at) === zero ? at + 1 : skipDigits(text, at)
  if (text.charCodeAt(at) === dot) at = skipDigits(text, at + 1)
  if (toLowerCase(text.charCodeAt(at)) !== letterE) return at
  const sign = text.charCodeAt(at + 1)
  return skipDigits(text, sign === plus || sign === minus ? at + 2 : at + 1)
}

function skipDigits(text: string, start: number): number {
  let at = start
  while (isDigit(text.charCodeAt(at))) at++
  if (at === start) throw expected(text, at, 'a digit')
  return at
}

/** Skips white space, if there is any. */
export function skipSpace(text: string, start: number): number {
  let at = start
  while (isSpace(text.charCodeAt(at))) at++
  return at
}

function isSpace(code: number): boolean {
  if (code > space) return false
  return code === space || code === lineFeed || code === carriageReturn || code === tab
}

function requireDepth(text: string, start: number, depth: number): void {
  if (depth <= limits.jsonDepth) return
  throw invalidJson(text, start, `nesting deeper than ${limits.jsonDepth} levels`)
}
