import { limits } from './limits.ts'
import { pageLimits } from './parameters.ts'
import {
  type ArrayShape,
  type BodyShape,
  type IntegerShape,
  int64Bounds,
  type ObjectShape,
  storablePattern,
  type TextShape,
  type ValueOf,
} from './schema.ts'

const id = {
  type: 'integer',
  format: 'int64',
  ...int64Bounds,
  description:
    'Identification number of the plant: any 64-bit signed integer, exact to the last digit. ' +
    'JavaScript numbers, and with them generated TypeScript clients, round it beyond 2^53: ' +
    'read it as a bigint.',
  examples: [1],
} as const satisfies IntegerShape

const name = {
  type: 'string',
  pattern: storablePattern,
  description:
    'The name of the plant: any Unicode text, including the empty string, without NUL ' +
    'characters and lone surrogates. It is stored byte for byte.',
  examples: ['Monstera deliciosa'],
} as const satisfies TextShape

const tag = {
  type: 'string',
  pattern: storablePattern,
  description:
    'Tag that specifies the type of the plant, under the same rules as the name. A plant that ' +
    'was stored without a tag is returned without this member.',
  examples: ['indoor'],
} as const satisfies TextShape

/** The answer to a create, and the body of a replace. */
export const Plant = {
  type: 'object',
  required: ['name'],
  properties: { name, tag },
  title: 'Plant',
  description: 'A plant without its id.',
} as const satisfies BodyShape

const withId = {
  type: 'object',
  required: ['id', 'name'],
  properties: { id, name, tag },
} as const

/** The body of a create. */
export const NewPlant = {
  ...withId,
  title: 'NewPlant',
  description: 'A plant to store. Other members are ignored.',
} as const satisfies BodyShape

/** A plant with its id, as the store holds it. */
export const StoredPlant = {
  ...withId,
  title: 'StoredPlant',
  description: 'A plant with its id, as it is stored.',
} as const satisfies ObjectShape

/** A page of plants: a bare array. */
export const StoredPlants = {
  type: 'array',
  items: StoredPlant,
  title: 'StoredPlants',
  description: 'Plants in the order of their ids.',
  maxItems: pageLimits.max,
} as const satisfies ArrayShape

/** The body of every failure. */
export const ErrorBody = {
  type: 'object',
  required: ['error', 'message'],
  properties: {
    error: {
      type: 'integer',
      description: 'Numeric error value: the HTTP status times 100, plus a detail.',
      format: 'int32',
      minimum: 40000,
      maximum: 59999,
      examples: [40003],
    },
    message: {
      type: 'string',
      description:
        'Error message text: one English sentence that says what was wrong and what was ' +
        'expected. Its wording may change.',
      examples: ['The member "name" is missing.'],
    },
  },
  title: 'Error',
  description: 'Why the request failed. Programs switch on `error`; people read `message`.',
  additionalProperties: false,
} as const satisfies ObjectShape

/** The answer of the health checks. */
export const Health = {
  type: 'object',
  required: ['status'],
  properties: {
    status: {
      type: 'string',
      enum: ['ok'],
      description: 'A failed check returns an `Error` instead.',
    },
  },
  title: 'Health',
  description: 'The check passed.',
  additionalProperties: false,
} as const satisfies ObjectShape

const eventTypes = ['plant.created', 'plant.replaced', 'plant.deleted'] as const

/** A change of a plant that succeeded. */
export const Event = {
  type: 'object',
  required: ['position', 'type', 'at', 'plant'],
  properties: {
    position: {
      type: 'string',
      pattern: '^[A-Za-z0-9_-]{1,64}$',
      description: 'Names the place of the change in the journal. It means nothing else.',
      examples: ['5f3a9c01d2e4-1z-1-k9x2m'],
    },
    type: { type: 'string', enum: eventTypes, description: 'The kind of change.' },
    at: {
      type: 'string',
      format: 'date-time',
      description: 'When it was made: RFC 3339, in UTC, with milliseconds.',
      examples: ['2026-01-31T12:00:00.000Z'],
    },
    plant: StoredPlant,
  },
  title: 'Event',
  description:
    'A change that succeeded, with the plant as it was created, as it is after a replace, or as ' +
    'it was before a delete.',
  additionalProperties: false,
} as const satisfies ObjectShape

/** A page of events: a bare array. */
export const Events = {
  type: 'array',
  items: Event,
  title: 'Events',
  description: 'Changes, oldest first, in the same order for every client.',
  maxItems: pageLimits.max,
} as const satisfies ArrayShape

/** How many refused lines a report lists, and how many characters of each it repeats. */
export const maxRefused = 1_000
export const maxRefusedText = 1_000

/** How many columns a report names. */
export const maxIgnored = 20

/** The largest line number, and therefore the largest count. */
export const maxLines = 2 ** 31 - 1

function count<const Description extends string>(description: Description, ...examples: number[]) {
  return {
    type: 'integer',
    format: 'int32',
    minimum: 0,
    maximum: maxLines,
    description,
    ...(examples.length > 0 && { examples }),
  } as const satisfies IntegerShape
}

const RefusedLine = {
  type: 'object',
  required: ['line', 'error', 'message', 'text'],
  properties: {
    line: { ...count('The number of the line; the first is 1.', 3), minimum: 1 },
    id: { ...NewPlant.properties.id, description: 'The id of the plant, if it is known.' },
    error: { ...ErrorBody.properties.error, examples: [40900] },
    message: {
      ...ErrorBody.properties.message,
      examples: ['The store has a plant with this id and different content, which was kept.'],
    },
    text: {
      type: 'string',
      maxLength: maxRefusedText,
      description: `The record as it is in the file: its first ${maxRefusedText} characters.`,
      examples: ['3,Monstera'],
    },
  },
  title: 'RefusedLine',
  description: 'A line that was not taken, and why.',
} as const satisfies ObjectShape

const RefusedLines = {
  type: 'array',
  items: RefusedLine,
  title: 'RefusedLines',
  description: 'The first lines that were not taken, in the order of the file.',
  maxItems: maxRefused,
} as const satisfies ArrayShape

const IgnoredColumns = {
  type: 'array',
  items: { type: 'string', description: 'The name of a column.' },
  title: 'IgnoredColumns',
  description: `Columns of a CSV file that are not stored, the first ${maxIgnored}.`,
  maxItems: maxIgnored,
} as const satisfies ArrayShape

/** The answer to an import. */
export const ImportReport = {
  type: 'object',
  required: [
    'lines',
    'stored',
    'alreadyThere',
    'replaced',
    'skipped',
    'conflicts',
    'invalid',
    'refused',
    'refusedInAll',
  ],
  properties: {
    lines: count('Lines with a plant or a mistake; not the header and not blank lines.', 3),
    stored: count('Plants that were stored.', 2),
    alreadyThere: count('Plants that were there already, with the same content.'),
    replaced: count('Plants that replaced one with other content.'),
    skipped: count('Plants whose id had other content, with `on-conflict=skip`.'),
    conflicts: count('Plants whose id had other content, with `on-conflict=fail`.', 1),
    invalid: count('Lines that hold no plant.'),
    refused: RefusedLines,
    refusedInAll: count('The sum of `conflicts` and `invalid`, which may exceed the list.', 1),
    endedAtLine: {
      ...count(
        `The import ended early with this line, because it had refused ${limits.refusedLines}.`,
      ),
      minimum: 1,
    },
    header: { type: 'string', description: 'The header row of a CSV file, as it is.' },
    ignoredColumns: IgnoredColumns,
  },
  title: 'ImportReport',
  description: 'What became of each line. The plants are on disk when the report is sent.',
} as const satisfies ObjectShape

export type Plant = ValueOf<typeof Plant>
export type NewPlant = ValueOf<typeof NewPlant>
export type StoredPlant = ValueOf<typeof StoredPlant>
export type StoredPlants = ValueOf<typeof StoredPlants>
export type ErrorBody = ValueOf<typeof ErrorBody>
export type Health = ValueOf<typeof Health>
export type Event = ValueOf<typeof Event>
export type ImportReport = ValueOf<typeof ImportReport>
export type RefusedLine = ValueOf<typeof RefusedLine>
