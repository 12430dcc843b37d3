import { Failure } from '../contract/errors.ts'

const maxShown = 40
const lineFeed = 0x0a

/** A text that is not JSON, or not the JSON that we accept: what is wrong, and where. */
export function invalidJson(text: string, at: number, problem: string): Failure {
  return new Failure(40001, `Invalid JSON: ${problem} at ${toPosition(text, at)}.`)
}

/** Something other than `what` was found, which the grammar expects. */
export function expected(text: string, at: number, what: string): Failure {
  const actual = at < text.length ? `found ${toPrintable(text, at)}` : 'the text ends'
  return invalidJson(text, at, `expected ${what}, but ${actual}`)
}

/** A member whose object has one of the same name already. */
export function duplicateMember(text: string, at: number, name: string): Failure {
  const shown = name.length > maxShown ? `${name.slice(0, maxShown)}…` : name
  return invalidJson(text, at, `duplicate member ${JSON.stringify(shown)}`)
}

/** Lines and columns count from 1. A text of one line, such as a line of NDJSON, needs no line. */
function toPosition(text: string, at: number): string {
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
