import { isUtf8 } from 'node:buffer'
import { parse } from 'lossless-json'
import { Failure } from '../contract/errors.ts'
import { toInt64 } from '../contract/int64.ts'
import { limits } from '../contract/limits.ts'

const whitespace = new Set(Buffer.from(' \t\r\n'))
const messageLength = 120

/** Whether a body holds nothing but white space. */
export function isBlank(bytes: Buffer): boolean {
  return bytes.every((byte) => whitespace.has(byte))
}

/** Parses a body. Integers within int64 become bigints, every other number becomes NaN: nothing here needs one. */
export function parseJson(bytes: Buffer): unknown {
  if (isBlank(bytes)) throw new Failure(40002, 'The body is missing: send a JSON object.')
  if (!isUtf8(bytes)) throw notJson('it is not UTF-8')
  const text = bytes.toString('utf8')
  requireShallow(text)
  try {
    return parse(text, null, {
      parseNumber: (number) => toInt64(number) ?? Number.NaN,
      onDuplicateKey: ({ key }) => {
        throw notJson(`the member ${JSON.stringify(key.slice(0, messageLength))} is given twice`)
      },
    })
  } catch (error) {
    throw error instanceof SyntaxError ? notJson(error.message) : error
  }
}

function notJson(reason: string): Failure {
  const short = reason.slice(0, messageLength).toWellFormed()
  return new Failure(40001, `The body is not the JSON that we accept: ${short}.`)
}

// The parser is recursive: without a bound, a body of brackets would exhaust the stack.
function requireShallow(text: string): void {
  let depth = 0
  let isInString = false
  for (let index = 0; index < text.length; index++) {
    const character = text.charCodeAt(index)
    if (isInString) {
      if (character === 0x5c) index++
      else if (character === 0x22) isInString = false
    } else if (character === 0x22) isInString = true
    else if (character === 0x7b || character === 0x5b) {
      if (++depth > limits.jsonDepth) throw notJson(`it nests deeper than ${limits.jsonDepth}`)
    } else if (character === 0x7d || character === 0x5d) depth--
  }
}
