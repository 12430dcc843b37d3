import { type ErrorNumber, errors, toStatus } from './errors.ts'
import type { HeaderName } from './headers.ts'
import type { AnyShape } from './schema.ts'
import { ErrorBody, Health, NewPlant, Plant, StoredPlant, StoredPlants } from './shapes.ts'

/** A piece of the document. */
export type Json = Record<string, unknown>

/** The shapes that the document names. */
export const shapes = { Plant, NewPlant, StoredPlant, StoredPlants, Error: ErrorBody, Health }

/** A shape as the document has it: what it consists of is named, not repeated. */
export function toSchema(shape: AnyShape): Json {
  return shape === StoredPlants
    ? { ...shape, items: { $ref: '#/components/schemas/StoredPlant' } }
    : { ...shape }
}

/** One response for each status, with an example for each error number of that status. */
export function buildFailures(
  numbers: readonly ErrorNumber[],
  optionalHeaders: readonly HeaderName[] = [],
): Json {
  const byStatus = Map.groupBy(numbers, toStatus)
  return Object.fromEntries(
    [...byStatus].map(([status, sharing]) => [
      status,
      {
        description: sharing.map((number) => `${number}: ${errors[number]}`).join('\n\n'),
        headers: headerReferences(['X-Request-Id', ...failureHeaders(status), ...optionalHeaders]),
        content: {
          'application/json': {
            schema: { $ref: '#/components/schemas/Error' },
            examples: Object.fromEntries(
              sharing.map((number) => [
                number,
                { summary: errors[number], value: { error: number, message: errors[number] } },
              ]),
            ),
          },
        },
      },
    ]),
  )
}

/** What every answer to a token carries where the operator has set a limit. */
export const rateLimitHeaders: HeaderName[] = ['RateLimit', 'RateLimit-Policy']

// With 400 it comes when `Authorization` was given twice.
const authenticateStatuses = [400, 401, 403]

function failureHeaders(status: number): HeaderName[] {
  if (authenticateStatuses.includes(status)) return ['WWW-Authenticate']
  return status === 429 || status === 503 ? ['Retry-After'] : []
}

export function headerReferences(names: readonly HeaderName[]): Json {
  return Object.fromEntries(names.map((name) => [name, { $ref: `#/components/headers/${name}` }]))
}

export function jsonContent(shape: AnyShape): Json {
  const name = Object.entries(shapes).find(([, known]) => known === shape)?.[0]
  if (name === undefined) throw new Error('a shape of an operation is missing in the document')
  return { 'application/json': { schema: { $ref: `#/components/schemas/${name}` } } }
}
