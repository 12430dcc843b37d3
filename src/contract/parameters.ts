import { delimiterNames } from './formats.ts'
import { int64Bounds, storablePattern } from './schema.ts'
import { maxSearchedCharacters } from './values.ts'

/** The bounds of a page. */
export const pageLimits = { default: 100, max: 1_000 }

const entityTag = '(?:W/)?"[!#-~\\x80-\\xff]*"'
const space = '[ \\t]*'
const entityTags = `(?:${space},)*${space}${entityTag}(?:${space},(?:${space}${entityTag})?)*`
/** `*`, or a list of entity tags, in which elements may be empty (RFC 9110, section 5.6.1). */
const entityTagsPattern = `^(?:\\*|${entityTags}${space})$`

/** The value of `after` that stands for the current end of the journal. */
export const latest = 'latest'

/** The orders of a list, by id. */
export const orders = ['asc', 'desc'] as const
export type Order = (typeof orders)[number]

/** The rules of an import for a plant whose id has other content. */
export const conflictRules = ['fail', 'skip', 'replace'] as const
export type ConflictRule = (typeof conflictRules)[number]

/**
 * The parameters of operations except the id in the path. A wrong or repeated one is 40005. Two
 * that share a `name` in requests have keys of their own. None has an example: documentation
 * viewers fill examples in and send them, and a request with an invented condition or key fails.
 */
export const parameters = {
  limit: {
    in: 'query',
    description:
      'The maximum number of plants, or of changes, on a page. A page ends at 1 MiB, too. A stream ' +
      'of changes has no end.',
    schema: {
      type: 'integer',
      format: 'int32',
      minimum: 1,
      maximum: pageLimits.max,
      default: pageLimits.default,
    },
  },
  exportLimit: {
    name: 'limit',
    in: 'query',
    description: 'The maximum number of plants to return: all of them, unless it is given.',
    schema: { type: 'integer', format: 'int32', minimum: 1, maximum: 2 ** 31 - 1 },
  },
  position: {
    name: 'after',
    in: 'query',
    description:
      'Returns only changes after this position, from an event or a `Link`. ' +
      '`latest` stands for the present end. Without it, the oldest change that is kept is first.',
    schema: { type: 'string', pattern: '^[A-Za-z0-9_-]{1,64}$' },
  },
  'Last-Event-ID': {
    in: 'header',
    description:
      'Like `after` for a stream, and takes precedence: browsers send it when they reconnect.',
    schema: { type: 'string' },
  },
  after: {
    in: 'query',
    description:
      'Returns only plants after this id: those with a greater one, or with a smaller one in ' +
      'descending order.',
    schema: { type: 'integer', format: 'int64', ...int64Bounds },
  },
  tag: {
    in: 'query',
    description:
      'Returns only plants with exactly this tag. An empty value (`tag=`) finds the empty tag.',
    schema: { type: 'string', pattern: storablePattern },
  },
  name: {
    in: 'query',
    description:
      'Returns only plants whose name contains this text, in upper or lower case: both are ' +
      'compared in upper case. No character has a special meaning. An empty value (`name=`) ' +
      'finds every plant. A request examines a limited number of plants: a page may be short or ' +
      'empty while `Link` leads to the next one.',
    schema: { type: 'string', maxLength: maxSearchedCharacters, pattern: storablePattern },
  },
  order: {
    in: 'query',
    description: 'The order of the ids: `asc` (ascending) or `desc` (descending).',
    schema: { type: 'string', enum: orders, default: 'asc' },
  },
  'on-conflict': {
    in: 'query',
    description:
      'What happens to a plant whose id has other content: `fail` keeps the stored one and ' +
      'reports the line, `skip` keeps it and only counts the line, `replace` replaces it.',
    schema: { type: 'string', enum: conflictRules, default: 'fail' },
  },
  'dry-run': {
    in: 'query',
    description: 'Returns the report that the import would give now, and stores nothing.',
    schema: { type: 'boolean', default: false },
  },
  delimiter: {
    in: 'query',
    description:
      'What separates the fields. Without it, an export has commas, and an import goes by its ' +
      'header row.',
    schema: { type: 'string', enum: delimiterNames },
  },
  spreadsheet: {
    in: 'query',
    description:
      'Writes a file for spreadsheets, not for another import: with a byte order mark, and with an ' +
      'apostrophe before text that a spreadsheet would take for a formula.',
    schema: { type: 'boolean', default: false },
  },
  'If-Match': {
    in: 'header',
    description:
      'Proceeds only if the current `ETag` of the plant is in this list, such as ' +
      '`"1d8f0c5a7b21"`; `*` stands for any. A weak tag never matches. A create refuses it with ' +
      '412: a plant that does not exist yet has no `ETag`.',
    schema: { type: 'string', pattern: entityTagsPattern },
  },
  'If-None-Match': {
    in: 'header',
    description:
      'Proceeds only if the current `ETag` of the plant is not in this list, such as ' +
      '`"1d8f0c5a7b21"`; `*` stands for any, so that nothing is overwritten.',
    schema: { type: 'string', pattern: entityTagsPattern },
  },
  'Idempotency-Key': {
    in: 'header',
    description:
      'Makes a retry safe. For 24 hours, a request with the same key, token and plant returns ' +
      'the first response again and stores nothing. A random UUID is a good key.',
    schema: { type: 'string', minLength: 1, maxLength: 255, pattern: '^[!-~]+$' },
  },
} as const

/** The id in the path. */
export const idParameter = {
  name: 'id',
  in: 'path',
  required: true,
  description: 'The id of the plant: digits with an optional minus sign, without leading zeros.',
  schema: { type: 'integer', format: 'int64', ...int64Bounds },
  example: 1,
} as const

export type ParameterName = keyof typeof parameters

/** The name of a parameter in a request. */
export function toRequestName(name: ParameterName): string {
  const parameter = parameters[name]
  return 'name' in parameter ? parameter.name : name
}

/** The states of a plant that a client names, or `*` for any. */
export type States = '*' | readonly bigint[]

/** The conditions of a request (RFC 9110, section 13). An empty one always holds. */
export interface Precondition {
  /** If-Match. */
  readonly match?: States | undefined
  /** If-None-Match. */
  readonly noneMatch?: States | undefined
}

/** The condition that this version does not meet. An undefined version means no plant. */
export function findUnmet(
  { match, noneMatch }: Precondition,
  version: bigint | undefined,
): keyof Precondition | undefined {
  if (match !== undefined && !includes(match, version)) return 'match'
  if (noneMatch !== undefined && includes(noneMatch, version)) return 'noneMatch'
  return undefined
}

function includes(states: States, version: bigint | undefined): boolean {
  return version !== undefined && (states === '*' || states.includes(version))
}
