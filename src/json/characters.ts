// The code units that JSON consists of.
export const tab = 0x09
export const lineFeed = 0x0a
export const carriageReturn = 0x0d
export const space = 0x20
export const quote = 0x22
export const plus = 0x2b
export const comma = 0x2c
export const minus = 0x2d
export const dot = 0x2e
export const zero = 0x30
export const nine = 0x39
export const colon = 0x3a
export const openBracket = 0x5b
export const backslash = 0x5c
export const closeBracket = 0x5d
export const letterA = 0x61
export const letterE = 0x65
export const letterF = 0x66
export const letterU = 0x75
export const openBrace = 0x7b
export const closeBrace = 0x7d

export function isDigit(code: number): boolean {
  return code >= zero && code <= nine
}

/** A small letter for a capital one. */
export function toLowerCase(code: number): number {
  return code | 0x20
}
