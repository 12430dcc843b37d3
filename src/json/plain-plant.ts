import type { NewPlant } from '../contract/shapes.ts'
import { toInt64 } from '../contract/values.ts'

/**
 * A plant as nearly every client writes it: members in this order, an id in digits, no escapes.
 * JSON allows less white space than `\s` matches.
 */
const plainPlant = new RegExp(
  String.raw`^ ?\{ ?"id" ?: ?(-?(?:0|[1-9]\d{0,18})) ?, ?"name" ?: ?"(text)" ?(?:, ?"tag" ?: ?"(text)" ?)?\} ?$`
    .replaceAll(' ?', String.raw`[ \t\r\n]*`)
    .replaceAll('(text)', String.raw`([^"\\\x00-\x1f]*)`),
)

export const plainNames: readonly string[] = ['id', 'name', 'tag']

/**
 * Reads a plain plant in one match, several times faster than the scanner; undefined for others.
 */
export function readPlainPlant(text: string): NewPlant | undefined {
  const match = plainPlant.exec(text)
  if (match === null) return undefined
  const [, digits = '', name = '', tag] = match
  const id = toInt64(digits)
  if (typeof id !== 'bigint') return undefined
  return tag === undefined ? { id, name } : { id, name, tag }
}
