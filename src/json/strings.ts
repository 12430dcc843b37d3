import { expected } from './invalid.ts'
import type { Units } from './units.ts'

/** The value of a string, from its opening quote to the position after the closing one. */
export function readString(text: string, start: number, end: number): string {
  const content = text.slice(start + 1, end - 1)
  return content.includes('\\') ? JSON.parse(text.slice(start, end)) : content
}

/** Where a string ends that begins here. */
export function findStringEnd(text: string, start: number): number {
  let at = start + 1
  while (text[at] !== '"') at += text[at] === '\\' ? 2 : 1
  return at + 1
}

const letterU = 0x75
const nothing = 0xff
const escapes = toTable('"\\/bfnrt', (escaped) => JSON.parse(`"\\${escaped}"`).charCodeAt(0))
const hexDigits = toTable('0123456789abcdefABCDEF', (digit) => Number.parseInt(digit, 16))

/** The numbers that characters stand for, by their code units. */
function toTable(characters: string, toNumber: (character: string) => number): Uint8Array {
  const table = new Uint8Array(2 ** 16).fill(nothing)
  for (const character of characters) table[character.charCodeAt(0)] = toNumber(character)
  return table
}

/** The code unit that an escape stands for, whose backslash is here. */
export function decodeEscape(text: string, units: Units, start: number): number {
  const escaped = units[start + 1] as number
  if (escaped === letterU) return decodeHex(text, units, start + 2)
  const unit = escapes[escaped] as number
  if (unit === nothing) throw expected(text, start + 1, 'one of "\\/bfnrtu after a backslash')
  return unit
}

function decodeHex(text: string, units: Units, start: number): number {
  let unit = 0
  for (let at = start; at < start + 4; at++) {
    const digit = hexDigits[units[at] as number] as number
    if (digit === nothing) throw expected(text, at, 'four hexadecimal digits')
    unit = unit * 16 + digit
  }
  return unit
}

/** How many characters an escape has. */
export function widthOfEscape(units: Units, start: number): number {
  return units[start + 1] === letterU ? 6 : 2
}
