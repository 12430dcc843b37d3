import { isUtf8 } from 'node:buffer'
import { parse } from 'lossless-json'
import { Failure } from '../contract/errors.ts'
import { toInt64 } from '../contract/int64.ts'
import { limits } from '../contract/limits.ts'

const whitespace = new Set(Buffer.from(' \t\r\n'))
const messageLength = 120

// Character codes, for a walk over the text.
const quote = 0x22
const backslash = 0x5c
const colon = 0x3a
const openBrace = 0x7b
const closeBrace = 0x7d
const openBracket = 0x5b
const closeBracket = 0x5d

/** Whether a body holds nothing but white space. */
export function isBlank(bytes: Buffer): boolean {
  return bytes.every((byte) => whitespace.has(byte))
}

/** Parses a body. */
export function parseBody(bytes: Buffer): unknown {
  if (isBlank(bytes)) throw new Failure(40002, 'The body is missing: send a JSON object.')
  if (!isUtf8(bytes)) throw notJson('it is not UTF-8')
  return parseJson(bytes.toString('utf8'))
}

/**
 * A plant as nearly everybody writes it: its members in our order, nothing to unescape, an id in digits. What matches
 * needs no parser. White space is JSON's own, which is less than what `\s` stands for.
 */
const plainPlant = new RegExp(
  String.raw`^ ?\{ ?"id" ?: ?(-?(?:0|[1-9]\d{0,18})) ?, ?"name" ?: ?"(text)" ?(?:, ?"tag" ?: ?"(text)" ?)?\} ?$`
    .replaceAll(' ?', String.raw`[ \t\r\n]*`)
    .replaceAll('(text)', String.raw`([^"\\\x00-\x1f]*)`),
)

/** Parses JSON. Integers within int64 become bigints, every other number becomes NaN: nothing here needs one. */
export function parseJson(text: string): unknown {
  const plain = plainPlant.exec(text)
  if (plain !== null) {
    const [, digits = '', name = '', tag] = plain
    const id = toInt64(digits)
    if (id !== undefined) return tag === undefined ? { id, name } : { id, name, tag }
  }
  const written = countMembers(text)
  try {
    const value = parse(text, null, {
      parseNumber: (number) => toInt64(number) ?? Number.NaN,
      onDuplicateKey: ({ key }) => {
        throw notJson(`the member ${JSON.stringify(key.slice(0, messageLength))} is given twice`)
      },
    })
    // The parser takes an empty array and an empty object for equal, and lets the second pass.
    if (countKept(value) !== written) throw notJson('a member is given twice')
    return value
  } catch (error) {
    throw error instanceof SyntaxError ? notJson(error.message) : error
  }
}

function notJson(reason: string): Failure {
  const short = reason.slice(0, messageLength).toWellFormed()
  return new Failure(40001, `This is not the JSON that we accept: ${short}.`)
}

/** How many members the text writes. Refuses one that nests too deep: the parser is recursive, and has no bound. */
function countMembers(text: string): number {
  let depth = 0
  let members = 0
  let isInString = false
  for (let index = 0; index < text.length; index++) {
    const character = text.charCodeAt(index)
    if (isInString) {
      if (character === backslash) index++
      else if (character === quote) isInString = false
    } else if (character === quote) isInString = true
    else if (character === colon) members++
    else if (character === openBrace || character === openBracket) {
      if (++depth > limits.jsonDepth) throw notJson(`it nests deeper than ${limits.jsonDepth}`)
    } else if (character === closeBrace || character === closeBracket) depth--
  }
  return members
}

/** How many members the value has, down to its depths. */
function countKept(value: unknown): number {
  if (typeof value !== 'object' || value === null) return 0
  let members = Array.isArray(value) ? 0 : Object.keys(value).length
  for (const inner of Object.values(value)) members += countKept(inner)
  return members
}
