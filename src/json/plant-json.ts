import { Failure } from '../contract/errors.ts'
import { type BodyShape, toExactJson, type ValueOf } from '../contract/schema.ts'
import type {
  Event,
  ImportReport,
  NewPlant,
  Plant,
  RefusedLine,
  StoredPlant,
} from '../contract/shapes.ts'
import { int64Range, isStorable, type NotInt64, toInt64 } from '../contract/values.ts'
import { readString, scan } from './scan.ts'

/** The rule of a shape for one member. */
interface Rule {
  readonly name: string
  readonly type: 'string' | 'integer'
  readonly isRequired: boolean
}

/**
 * Builds the reader of one shape, from JSON to a value of its type. Throws a `Failure` that names
 * the wrong member. Members in `alsoKept` are kept unchecked.
 */
export function buildShapeReader<Shape extends BodyShape>(
  shape: Shape,
  alsoKept: readonly string[] = [],
) {
  const rules = Object.entries(shape.properties).map(([name, { type }]): Rule => {
    return { name, type, isRequired: shape.required.includes(name) }
  })
  const names = [...rules.map(({ name }) => name), ...alsoKept]
  const mayBePlain = plainNames.every((name) => names.includes(name))

  return (text: string): ValueOf<Shape> => {
    const plain = mayBePlain ? readPlainPlant(text) : undefined
    const members: Members = plain ?? readMembers(text, names)
    for (const rule of rules) {
      if (!isRight(rule, members[rule.name])) throw misshapen(rules, members)
    }
    return members as ValueOf<Shape>
  }
}

function isRight({ type, isRequired }: Rule, found: Found | undefined): boolean {
  if (found === undefined) return !isRequired
  return type === 'string'
    ? typeof found === 'string' && isStorable(found)
    : typeof found === 'bigint'
}

/** Names the first missing member or, if none is missing, the first wrong one. */
function misshapen(rules: readonly Rule[], members: Members): Failure {
  const missing = rules.find(({ name, isRequired }) => isRequired && members[name] === undefined)
  if (missing !== undefined) {
    return new Failure(40003, `The member "${missing.name}" is missing.`)
  }
  const wrong = rules.find((rule) => !isRight(rule, members[rule.name])) as Rule
  const found = members[wrong.name] as Found
  return new Failure(
    40003,
    `The member "${wrong.name}" must be ${describeExpected(wrong.type, found)}.`,
  )
}

function describeExpected(type: Rule['type'], found: Found): string {
  const kind = toKind(found)
  if (type === 'integer') {
    if (typeof found === 'string') return 'an integer, but is a string: write it without quotes'
    const fault = (typeof found === 'object' && found.fault) || kind
    const isBeyond = fault === 'too large' || fault === 'too small'
    return `an integer${isBeyond ? ` ${int64Range}` : ''}, but is ${fault}`
  }
  if (kind === 'null') return 'a string, but is null: leave it out if there is none'
  if (typeof found !== 'string') return `a string, but is ${kind}`
  return 'a string without NUL characters and without lone surrogates'
}

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

/** A value that fits no member of any shape. Messages only need its kind. */
interface Misfit {
  readonly kind: 'null' | 'a boolean' | 'a number' | 'an array' | 'an object'
  /** Why a number is not an int64. */
  readonly fault?: NotInt64
}

/** The value of a member: text, an exact int64, or something that fits no shape. */
type Found = string | bigint | Misfit

/** The wanted members that the object has. */
type Members = Record<string, Found>

/**
 * Reads the wanted members of a JSON object. The rest of the text is checked for syntax, depth and
 * duplicate names, but no value is built from it.
 */
export function readMembers(text: string, wanted: readonly string[]): Members {
  const members: Members = {}
  scan(text, (name, start, end) => {
    // A duplicate is refused later, at the end of its object.
    if (wanted.includes(name)) members[name] ??= readValue(text, start, end)
  })
  if (text.trimStart().startsWith('{')) return members
  const other = text.trim()
  const kind = toKind(readValue(other, 0, other.length))
  throw new Failure(
    40003,
    `A JSON object is expected, but this is ${kind}. Send {"id": 42, "name": "Monstera"}, for example.`,
  )
}

/** The kind of a value, for messages. */
function toKind(found: Found): string {
  if (typeof found === 'string') return 'a string'
  if (typeof found === 'bigint') return 'an integer'
  return found.kind
}

/** What a value is that begins with this character. The others are strings and numbers. */
const kinds: Readonly<Record<string, Misfit['kind']>> = {
  '{': 'an object',
  '[': 'an array',
  t: 'a boolean',
  f: 'a boolean',
  n: 'null',
}

function readValue(text: string, start: number, end: number): Found {
  const first = text[start] as string
  if (first === '"') return readString(text, start, end)
  const kind = kinds[first]
  if (kind !== undefined) return { kind }
  const number = toInt64(text.slice(start, end))
  return typeof number === 'bigint' ? number : { kind: 'a number', fault: number }
}

/** A plant as JSON on one line, with all digits of its id. */
export function toJson(plant: Plant | StoredPlant): string {
  return JSON.stringify(toWritable(plant))
}

/** Plants as a JSON array. One call of `stringify` is fastest. */
export function toJsonArray(plants: readonly StoredPlant[]): string {
  return JSON.stringify(plants.map(toWritable))
}

/** The report of an import as JSON, with all digits of its ids. */
export function toReportJson(report: ImportReport): string {
  return JSON.stringify({ ...report, refused: report.refused.map(toWritableLine) })
}

function toWritableLine({ line, id, ...rest }: RefusedLine) {
  return { line, id: id === undefined ? undefined : toWritableId(id), ...rest }
}

/** An event as the store has it. */
interface StoredEvent extends Pick<Event, 'position' | 'type'> {
  readonly at: number
  readonly plantJson: string
}

/** An event as JSON on one line. Only the plant, which is JSON already, could need escapes. */
export function toEventJson({ position, type, at, plantJson }: StoredEvent): string {
  return `{"position":"${position}","type":"${type}","at":"${toTime(at)}","plant":${plantJson}}`
}

/** Events as a JSON array. */
export function toEventArray(events: readonly StoredEvent[]): string {
  return `[${events.map(toEventJson).join(',')}]`
}

let lastAt = 0
let lastTime = new Date(lastAt).toISOString()

/** A time as text. Remembers the last one, because all changes of a commit share it. */
function toTime(at: number): string {
  if (at !== lastAt) lastTime = new Date(at).toISOString()
  lastAt = at
  return lastTime
}

/** Only the members of a plant. `stringify` omits an absent tag. */
function toWritable(plant: Plant | StoredPlant) {
  const { name, tag } = plant
  return 'id' in plant ? { id: toWritableId(plant.id), name, tag } : { name, tag }
}

const largestSafe = BigInt(Number.MAX_SAFE_INTEGER)

function toWritableId(id: bigint): unknown {
  return id <= largestSafe && id >= -largestSafe ? Number(id) : toExactJson(id)
}
