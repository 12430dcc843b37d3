import fc from 'fast-check'
import { type Format, formats } from '../../src/contract/formats.ts'
import type { OperationName } from '../../src/contract/operations.ts'
import { anyCharacter } from '../support/characters.ts'
import { authorized, json } from '../support/service.ts'
import type { Request } from '../support/wire.ts'
import { everyOperation } from './scenarios/every-operation.ts'

/** Which state of a plant a tag in a condition names. */
export type State = 'current' | 'former' | 'never seen'

/** A condition of a request. Its tags depend on the engine, so it names states instead. */
export interface Condition {
  readonly header: 'If-Match' | 'If-None-Match'
  /** `*`, broken text, or a list of states, each as a strong or a weak tag. */
  readonly value: string | readonly { readonly state: State; readonly prefix: '' | 'W/' }[]
}

/** A request, and its condition if it has one. */
export interface RandomRequest extends Request {
  readonly condition?: Condition
}

/** Few ids, so that requests meet each other; among them the ends of int64 and some beyond 2^53. */
const id = fc.oneof(
  { weight: 6, arbitrary: fc.integer({ min: -6, max: 6 }).map(String) },
  {
    weight: 2,
    arbitrary: fc.constantFrom(
      '9223372036854775807',
      '-9223372036854775808',
      '9007199254740993',
      '9223372036854775808',
      '1e2',
      '2.0',
      '1.5',
      '"1"',
      'null',
      '-0',
    ),
  },
  {
    weight: 1,
    arbitrary: fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n }).map(String),
  },
)

const oddTexts = [
  '',
  '\0',
  '\ud800',
  "'; DROP TABLE plants; --",
  '{"a","b"}',
  '\\',
  '"',
  'NULL',
  ' ',
  '\u{10ffff}',
  'é',
  'e\u0301',
]
const text = fc.oneof(
  fc.string({ unit: anyCharacter, maxLength: 40 }),
  fc.constantFrom(...oddTexts),
  fc.constantFrom('Fern', 'Rose'),
)
/** Few tags, so that lists by tag find something. */
const tag = fc.option(fc.oneof(text, fc.constantFrom('indoor', '', 'é & +')))

/** An object with these members, as JSON: an id is written as it is. */
function toBody(key: string | null, name: string, label: string | null): string {
  const members = [`"name":${JSON.stringify(name)}`]
  if (key !== null) members.unshift(`"id":${key}`)
  if (label !== null) members.push(`"tag":${JSON.stringify(label)}`)
  return `{${members.join(',')}}`
}

const noPlant = fc.oneof(fc.json(), fc.string({ unit: anyCharacter }))
const newPlant = fc.oneof(
  { weight: 8, arbitrary: fc.tuple(id, text, tag).map((parts) => toBody(...parts)) },
  { weight: 1, arbitrary: noPlant },
)
const path = id.map((key) => `/plants/${encodeURIComponent(key)}`)

const state = fc.constantFrom<State>('current', 'current', 'former', 'never seen')
const condition: fc.Arbitrary<Condition> = fc.record({
  header: fc.constantFrom('If-Match', 'If-None-Match'),
  value: fc.oneof(
    {
      weight: 4,
      arbitrary: fc.array(fc.record({ state, prefix: fc.constantFrom('', '', 'W/') }), {
        minLength: 1,
        maxLength: 3,
      }),
    },
    { weight: 2, arbitrary: fc.constant('*') },
    { weight: 1, arbitrary: fc.constantFrom('', '"', 'a', '"a" "b"', '*, "a"') },
  ),
})

function withCondition(request: fc.Arbitrary<Request>): fc.Arbitrary<RandomRequest> {
  return fc
    .tuple(request, fc.option(condition, { freq: 2, nil: undefined }))
    .map(([one, maybe]) => (maybe === undefined ? one : { ...one, condition: maybe }))
}

const key = fc.option(fc.constantFrom('a', 'b', 'c', 'd', 'e', '', 'no key'), { freq: 2 })
const create = fc.tuple(newPlant, key).map(([content, idempotencyKey]) => ({
  method: 'POST',
  path: '/plants',
  headers: { ...json, ...(idempotencyKey !== null && { 'Idempotency-Key': idempotencyKey }) },
  body: Buffer.from(content),
}))

const replace = fc.tuple(id, text, tag, fc.boolean(), noPlant, fc.nat(9)).map(([key, ...rest]) => {
  const [name, label, hasId, other, chance] = rest
  const body = chance === 0 ? other : toBody(hasId ? key : null, name, label)
  const at = `/plants/${encodeURIComponent(key)}`
  return { method: 'PUT', path: at, headers: json, body: Buffer.from(body) }
})

function bare(method: string): fc.Arbitrary<Request> {
  return path.map((at) => ({ method, path: at, headers: authorized }))
}

const query = fc
  .record(
    {
      limit: fc.constantFrom('1', '2', '3', '1000', '0', '1001', 'x', ''),
      after: id,
      tag: fc.oneof(
        fc.constantFrom('indoor', '', 'é & +'),
        text.map((one) => one.toWellFormed()),
      ),
      name: fc.oneof(
        fc.constantFrom('r', 'RO', 'e', ''),
        text.map((one) => one.toWellFormed()),
      ),
      order: fc.constantFrom('asc', 'desc', 'desc', 'up'),
      unknown: fc.constant('1'),
    },
    { requiredKeys: [] },
  )
  .map((parameters) => new URLSearchParams(parameters as Record<string, string>).toString())
const list = query.map((text) => ({ path: `/plants?${text}`, headers: authorized }))

function toExport(format: Format, text: string): Request {
  return { path: `/plants.${format}?${text}`, headers: authorized }
}

const row = fc
  .tuple(id, text, tag)
  .map((fields) => fields.map((field) => (field === null ? '' : quote(field))).join(','))

function quote(field: string): string {
  return /["\n]/.test(field) ? `"${field.replaceAll('"', '""')}"` : field
}

function imported(format: Format, line: fc.Arbitrary<string>): fc.Arbitrary<Request> {
  const rule = fc.constantFrom('', '?on-conflict=skip', '?on-conflict=replace', '?on-conflict=no')
  return fc.tuple(fc.array(line, { maxLength: 8 }), rule).map(([lines, query]) => ({
    method: 'POST',
    path: `/plants.${format}${query}`,
    headers: { ...authorized, 'Content-Type': formats[format].mediaType },
    body: Buffer.from([...(format === 'csv' ? ['id,name,tag'] : []), ...lines].join('\n')),
  }))
}

/** Requests for an operation. One without an entry has that of the scenarios. */
const byOperation: Partial<Record<OperationName, fc.WeightedArbitrary<RandomRequest>>> = {
  createPlant: { weight: 6, arbitrary: withCondition(create) },
  listPlants: { weight: 4, arbitrary: list },
  getPlant: { weight: 4, arbitrary: withCondition(bare('GET')) },
  replacePlant: { weight: 5, arbitrary: withCondition(replace) },
  deletePlant: { weight: 3, arbitrary: withCondition(bare('DELETE')) },
  getMetrics: { weight: 0, arbitrary: fc.constant({ path: '/metrics', headers: authorized }) },
  exportPlantsAsNdjson: { weight: 1, arbitrary: query.map((text) => toExport('ndjson', text)) },
  exportPlantsAsCsv: { weight: 1, arbitrary: query.map((text) => toExport('csv', text)) },
  // Positions are of one store, so the engines could not agree on them.
  listEvents: { weight: 0, arbitrary: fc.constant({ path: '/events', headers: authorized }) },
  importPlantsAsNdjson: { weight: 2, arbitrary: imported('ndjson', newPlant) },
  importPlantsAsCsv: { weight: 2, arbitrary: imported('csv', row) },
}

/** Any request, right or wrong. */
export const randomRequest: fc.Arbitrary<RandomRequest> = fc.oneof(
  ...everyOperation.map(
    ({ name, request }) => byOperation[name] ?? { weight: 1, arbitrary: fc.constant(request) },
  ),
  { weight: 1, arbitrary: fc.oneof(bare('HEAD'), bare('OPTIONS'), bare('QUERY')) },
  { weight: 1, arbitrary: path.map((at) => ({ path: at, headers: {} })) },
)
