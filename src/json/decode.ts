import { isUtf8 } from 'node:buffer'
import { Failure } from '../contract/errors.ts'

const whitespace = new Set(Buffer.from(' \t\r\n'))

/** Whether a body holds nothing but white space. */
export function isBlank(bytes: Buffer): boolean {
  for (let at = 0; at < bytes.length; at++) {
    if (!whitespace.has(bytes[at] as number)) return false
  }
  return true
}

/** The text of a body. */
export function decodeBody(bytes: Buffer): string {
  if (isBlank(bytes)) throw new Failure(40002, 'The body is missing: send a JSON object.')
  if (!isUtf8(bytes)) throw new Failure(40001, 'Invalid JSON: the body is not UTF-8.')
  return bytes.toString('utf8')
}
