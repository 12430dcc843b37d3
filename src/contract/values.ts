import { int64Bounds } from './schema.ts'

/** The values that a plant consists of: exact 64-bit integers, and text that can be stored. */

const { minimum, maximum } = int64Bounds
const maxDigits = 19

const plainInteger = /^-?\d{1,18}$/
const jsonNumber = /^(-?)(\d+)(?:\.(\d+))?(?:[eE]([+-]?\d+))?$/
const canonicalInteger = /^(?:0|-?[1-9]\d{0,18})$/

/** The range as text, for messages. */
export const int64Range = `from ${minimum} to ${maximum}`

/** Why a number is not an int64. */
export type NotInt64 = 'a fraction' | 'too large' | 'too small'

/**
 * The value of a JSON number if it is an int64, in any notation: 1, 1.0 and 1e0 are equal.
 * Nothing is rounded, and no exponent beyond the digits is expanded.
 */
export function toInt64(number: string): bigint | NotInt64 {
  if (plainInteger.test(number)) return BigInt(number)
  const parts = jsonNumber.exec(number)
  if (parts === null) return 'a fraction'
  const [, sign = '', whole = '', fraction = '', exponent = '0'] = parts
  const value = BigInt(whole + fraction)
  const shift = Number(exponent) - fraction.length
  if (value === 0n) return 0n
  if (shift < -(whole + fraction).length) return 'a fraction'
  const beyond = sign === '-' ? 'too small' : 'too large'
  if (shift >= maxDigits) return beyond
  const scale = 10n ** BigInt(Math.abs(shift))
  if (shift < 0 && value % scale !== 0n) return 'a fraction'
  const magnitude = shift < 0 ? value / scale : value * scale
  return withinRange(sign === '-' ? -magnitude : magnitude) ?? beyond
}

/** The id in a path segment: digits with an optional minus sign, without leading zeros. */
export function toPathId(segment: string): bigint | undefined {
  return canonicalInteger.test(segment) ? withinRange(BigInt(segment)) : undefined
}

function withinRange(value: bigint): bigint | undefined {
  return value >= minimum && value <= maximum ? value : undefined
}

/** Whether every engine can store this text and return it byte for byte. */
export function isStorable(text: string): boolean {
  return text.isWellFormed() && !text.includes('\0')
}

/** The longest text to search for, in characters. */
export const maxSearchedCharacters = 1_000

/** Whether a text can be searched for. */
export function isSearchable(text: string): boolean {
  return isStorable(text) && [...text].length <= maxSearchedCharacters
}

export const expectedSearch = `text of at most ${maxSearchedCharacters} characters, without NUL characters`
