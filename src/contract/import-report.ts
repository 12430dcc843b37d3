import { limits } from './limits.ts'
import type { ArrayShape, IntegerShape, ObjectShape, ValueOf } from './schema.ts'
import { ErrorBody, NewPlant } from './shapes.ts'

/** How many refused lines a report lists. */
export const maxRefused = 1_000

/** The largest line number, and therefore the largest count. */
export const maxLines = 2 ** 31 - 1

function count<const Description extends string>(description: Description) {
  return {
    type: 'integer',
    format: 'int32',
    minimum: 0,
    maximum: maxLines,
    description,
  } as const satisfies IntegerShape
}

const RefusedLine = {
  type: 'object',
  required: ['line', 'error', 'message'],
  properties: {
    line: { ...count('The number of the line; the first is 1.'), minimum: 1 },
    id: { ...NewPlant.properties.id, description: 'The id of the plant, if it is known.' },
    error: { ...ErrorBody.properties.error, examples: [40900] },
    message: ErrorBody.properties.message,
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
    lines: count('Lines with a plant or a mistake; not the header and not blank lines.'),
    stored: count('Plants that were stored.'),
    alreadyThere: count('Plants that were there already, with the same content.'),
    replaced: count('Plants that replaced one with other content.'),
    skipped: count('Plants whose id had other content, with `on-conflict=skip`.'),
    conflicts: count('Plants whose id had other content, with `on-conflict=fail`.'),
    invalid: count('Lines that hold no plant.'),
    refused: RefusedLines,
    refusedInAll: count('The sum of `conflicts` and `invalid`, which may exceed the list.'),
    endedAtLine: {
      ...count(
        `The import ended early with this line, because it had refused ${limits.refusedLines}.`,
      ),
      minimum: 1,
    },
  },
  title: 'ImportReport',
  description: 'What became of each line. The plants are on disk when the report is sent.',
} as const satisfies ObjectShape

export type ImportReport = ValueOf<typeof ImportReport>
export type RefusedLine = ValueOf<typeof RefusedLine>
