import { createHash, randomInt } from 'node:crypto'
import { crc32 } from 'node:zlib'

const alphabet = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'
const prefix = 'plst_'
/** 30 characters of 62 are 178 bits. */
const secretLength = 30
/** 6 characters of 62 hold every CRC32. */
const checksumLength = 6
const wellFormed = new RegExp(`^${prefix}[0-9A-Za-z]{${secretLength + checksumLength}}$`)

/** A new token: prefix, random part, checksum. */
export function newToken(): string {
  const body = prefix + randomText(secretLength)
  return body + checksumOf(body)
}

/** A new id of a token, by which the operator speaks of it. It is no secret. */
export function newTokenId(): string {
  return `tok_${randomText(12)}`
}

/** Whether this can be a token of ours. A typing error is seen here, without asking the store. */
export function isWellFormed(token: string): boolean {
  return (
    wellFormed.test(token) &&
    checksumOf(token.slice(0, -checksumLength)) === token.slice(-checksumLength)
  )
}

/** What is kept of a token. It is random, so a plain hash cannot be guessed back. */
export function hashToken(token: string): Buffer {
  return createHash('sha256').update(token).digest()
}

function randomText(length: number): string {
  return Array.from({ length }, () => alphabet[randomInt(alphabet.length)]).join('')
}

function checksumOf(text: string): string {
  let rest = crc32(text)
  let digits = ''
  for (let place = 0; place < checksumLength; place++) {
    digits = alphabet[rest % alphabet.length] + digits
    rest = Math.trunc(rest / alphabet.length)
  }
  return digits
}
