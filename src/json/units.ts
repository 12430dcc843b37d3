import { limits } from '../contract/limits.ts'

/**
 * The UTF-16 code units of a text, then a zero. V8 compiles code anew for each kind of string that
 * it meets, but only once for an array.
 */
export type Units = Uint16Array

const shared = buildUnits(limits.bodyBytes + 1)

/** The units of a text. They hold until the next call. */
export function toUnits(text: string): Units {
  const { units, bytes } = text.length < shared.units.length ? shared : buildUnits(text.length + 1)
  bytes.write(text, 'utf16le')
  units[text.length] = 0
  return units
}

function buildUnits(length: number) {
  const units = new Uint16Array(length)
  return { units, bytes: Buffer.from(units.buffer) }
}
