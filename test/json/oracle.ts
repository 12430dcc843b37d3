import { limits } from '../../src/contract/limits.ts'
import type { Found } from '../../src/json/members.ts'

/**
 * What `JSON.parse` makes of a text: its value, in which every string is in hexadecimal, and the
 * source of each number in the outermost object.
 */
export interface Parsed {
  readonly value: unknown
  readonly sources: ReadonlyMap<string, string>
}

/** Parses a text with `JSON.parse`; undefined if it refuses. */
export function parseNatively(text: string): Parsed | undefined {
  if (!isJson(text)) return undefined
  const sources: { holder: unknown; name: string; source: string }[] = []
  function collect(this: unknown, name: string, value: unknown, { source }: { source?: string }) {
    if (typeof value === 'number' && source !== undefined) {
      sources.push({ holder: this, name, source })
    }
    return value
  }
  // V8 14.6 reads the name "\n" as a backslash, if a text before had that name in the same place.
  const inHex = text.replaceAll(stringPattern, (string) => `"${toHex(JSON.parse(string))}"`)
  const value: unknown = JSON.parse(inHex, collect as Parameters<typeof JSON.parse>[1])
  const outermost = sources.filter(({ holder }) => holder === value)
  return { value, sources: new Map(outermost.map(({ name, source }) => [name, source])) }
}

const stringPattern = /"(?:[^"\\]|\\.)*"/g

function isJson(text: string): boolean {
  try {
    JSON.parse(text)
    return true
  } catch (error) {
    if (error instanceof SyntaxError) return false
    throw error
  }
}

function toHex(value: string): string {
  return Buffer.from(value, 'utf16le').toString('hex')
}

function fromHex(hex: string): string {
  return Buffer.from(hex, 'hex').toString('utf16le')
}

/** Whether we accept what `JSON.parse` accepts: duplicates and deep nesting are where we differ. */
export function isAccepted(text: string, { value }: Parsed): boolean {
  return countWrittenMembers(text) === countMembers(value) && toDepth(value) <= limits.jsonDepth
}

/** A member of the outermost object as our reader gives it, made from what `JSON.parse` gives. */
export function toFound({ value, sources }: Parsed, name: string): Found | undefined {
  const object = value as Record<string, unknown>
  const key = toHex(name)
  if (!Object.hasOwn(object, key)) return undefined
  const member = object[key]
  if (typeof member === 'string') return fromHex(member)
  if (typeof member === 'number') return toExactNumber(sources.get(key) as string)
  if (typeof member === 'boolean') return { kind: 'a boolean' }
  if (member === null) return { kind: 'null' }
  return { kind: Array.isArray(member) ? 'an array' : 'an object' }
}

/** The exact value, by arithmetic on integers of any size. For exponents of a few digits only. */
function toExactNumber(source: string): Found {
  const [mantissa = '', exponent = '0'] = source.toLowerCase().split('e')
  const [whole = '', fraction = ''] = mantissa.split('.')
  const power = Number(exponent) - fraction.length
  const digits = BigInt(whole.replace('-', '') + fraction)
  const scale = 10n ** BigInt(Math.abs(power))
  if (power < 0 && digits % scale !== 0n) return { kind: 'a number', fault: 'not an integer' }
  const size = power < 0 ? digits / scale : digits * scale
  const number = source.startsWith('-') ? -size : size
  if (number > 2n ** 63n - 1n) return { kind: 'a number', fault: 'too large' }
  if (number < -(2n ** 63n)) return { kind: 'a number', fault: 'too small' }
  return number
}

/** Valid JSON has as many members as colons outside its strings. */
function countWrittenMembers(text: string): number {
  return text.replaceAll(stringPattern, '').split(':').length - 1
}

function countMembers(value: unknown): number {
  if (typeof value !== 'object' || value === null) return 0
  const own = Array.isArray(value) ? 0 : Object.keys(value).length
  return Object.values(value).reduce((sum: number, inner) => sum + countMembers(inner), own)
}

function toDepth(value: unknown): number {
  if (typeof value !== 'object' || value === null) return 0
  return 1 + Math.max(0, ...Object.values(value).map(toDepth))
}
