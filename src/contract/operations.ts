import type { ErrorNumber } from './errors.ts'
import type { Format } from './formats.ts'
import type { HeaderName } from './headers.ts'
import type { ParameterName } from './parameters.ts'
import type { ArrayShape, BodyShape, ObjectShape } from './schema.ts'
import type { Scope } from './scopes.ts'
import { Health, NewPlant, Plant, StoredPlant, StoredPlants } from './shapes.ts'

export type Method = 'GET' | 'POST' | 'PUT' | 'DELETE'

/** One kind of success: what it means, its body if it has one, and the headers that it carries, always or at times. */
export interface Success {
  readonly description: string
  readonly shape?: ObjectShape | ArrayShape
  /** Other forms that the body can have, for a client that prefers one (`Accept`). */
  readonly formats?: readonly Format[]
  readonly headers: readonly HeaderName[]
  readonly optionalHeaders?: readonly HeaderName[]
}

/** What one operation promises. `{id}` in a path is the id of a plant. */
export interface Operation {
  readonly method: Method
  readonly path: string
  readonly scope: Scope
  readonly summary: string
  readonly description: string
  readonly parameters: readonly ParameterName[]
  readonly body?: BodyShape
  readonly successes: Readonly<Record<number, Success>>
  /** The failures of this operation alone; `failuresOf` adds those that it shares with others. */
  readonly failures: readonly ErrorNumber[]
}

/** Every operation of the service. The name of an operation is the name of its handler and of a client's method. */
export const operations = {
  createPlant: {
    method: 'POST',
    path: '/plants',
    scope: 'plants:write',
    summary: 'Create a plant',
    description:
      'Creates a new plant in the store. The answer is sent when the plant is on disk. When the id is taken, the stored plant stays as it is and the answer is 409.',
    parameters: ['Idempotency-Key', 'If-Match', 'If-None-Match'],
    body: NewPlant,
    successes: {
      200: {
        description: 'The plant is stored.',
        shape: Plant,
        headers: ['Location', 'ETag', 'X-Request-Id'],
        optionalHeaders: ['Idempotency-Replayed'],
      },
    },
    failures: [40900, 42200],
  },
  listPlants: {
    method: 'GET',
    path: '/plants',
    scope: 'plants:read',
    summary: 'List plants',
    description:
      'Answers plants in ascending order of their ids. While more follow, the header `Link` has the address of the next page; a plant that is there all the time is in exactly one page. A client that prefers `application/x-ndjson` or `text/csv` gets every plant at once instead, as they are at one moment, or at most `limit` of them where that is given.',
    parameters: ['limit', 'after', 'tag'],
    successes: {
      200: {
        description: 'A page of plants, or all of them.',
        shape: StoredPlants,
        formats: ['ndjson', 'csv'],
        headers: ['Vary', 'X-Request-Id'],
        optionalHeaders: ['Link', 'Content-Encoding'],
      },
    },
    failures: [],
  },
  getPlant: {
    method: 'GET',
    path: '/plants/{id}',
    scope: 'plants:read',
    summary: 'Get a plant',
    description: 'Answers the plant with this id.',
    parameters: ['If-Match', 'If-None-Match'],
    successes: {
      200: { description: 'The plant.', shape: StoredPlant, headers: ['ETag', 'X-Request-Id'] },
      304: {
        description: 'The plant has a state that `If-None-Match` names.',
        headers: ['ETag', 'X-Request-Id'],
      },
    },
    failures: [40401],
  },
  replacePlant: {
    method: 'PUT',
    path: '/plants/{id}',
    scope: 'plants:write',
    summary: 'Replace a plant, or create it',
    description:
      'Stores the plant under this id, in place of the one that is there. An `id` in the body must be that of the path.',
    parameters: ['If-Match', 'If-None-Match'],
    body: Plant,
    successes: {
      200: {
        description: 'The plant is replaced.',
        shape: StoredPlant,
        headers: ['ETag', 'X-Request-Id'],
      },
      201: {
        description: 'The plant is created.',
        shape: StoredPlant,
        headers: ['Location', 'ETag', 'X-Request-Id'],
      },
    },
    failures: [],
  },
  deletePlant: {
    method: 'DELETE',
    path: '/plants/{id}',
    scope: 'plants:write',
    summary: 'Delete a plant',
    description: 'Removes the plant with this id.',
    parameters: ['If-Match', 'If-None-Match'],
    successes: { 204: { description: 'The plant is gone.', headers: ['X-Request-Id'] } },
    failures: [40401],
  },
} as const satisfies Record<string, Operation>

export type Operations = typeof operations
export type OperationName = keyof Operations

/** A path that anybody may read without a token, because it says nothing about what is stored. */
export interface Page {
  readonly path: string
  readonly summary: string
  readonly description: string
  readonly mediaType: 'application/json' | 'text/html'
  /** Health must never come from a cache. */
  readonly cacheControl?: 'no-store'
  readonly shape?: ObjectShape
  readonly failures: readonly ErrorNumber[]
}

export const pages = {
  getHealth: {
    path: '/healthz',
    summary: 'Ask whether the process lives',
    description: 'Answers 200 as long as the process can answer at all.',
    mediaType: 'application/json',
    shape: Health,
    cacheControl: 'no-store',
    failures: [],
  },
  getReadiness: {
    path: '/readyz',
    summary: 'Ask whether the service can serve',
    description:
      'Answers 200 when the store answers, and 503 when it does not or while shutting down.',
    mediaType: 'application/json',
    shape: Health,
    cacheControl: 'no-store',
    failures: [50000, 50300, 50301],
  },
  getOpenApi: {
    path: '/openapi.json',
    summary: 'Get this document',
    description: 'Answers the OpenAPI document of the service.',
    mediaType: 'application/json',
    failures: [],
  },
  getDocs: {
    path: '/docs',
    summary: 'Read this document',
    description: 'Answers the OpenAPI document as a page to read.',
    mediaType: 'text/html',
    failures: [],
  },
} as const satisfies Record<string, Page>

export type PageName = keyof typeof pages

// What the protocol itself can go wrong with, on any path.
const protocolFailures: ErrorNumber[] = [40000, 40800, 41400, 41700, 43100, 50500]
const operationFailures: ErrorNumber[] = [40100, 40101, 40102, 40300, 42900, 50000, 50300, 50301]
const bodyFailures: ErrorNumber[] = [40001, 40002, 40003, 41300, 41500]
const writeFailures: ErrorNumber[] = [50400, 50700]

/** Every failure that an operation can answer, in ascending order. */
export function failuresOf(operation: Operation): ErrorNumber[] {
  return ascending([
    ...protocolFailures,
    ...operationFailures,
    ...(operation.path.includes('{id}') ? [40004 as const] : []),
    40005,
    ...(operation.parameters.includes('If-Match') ? [41200 as const] : []),
    ...(operation.body ? bodyFailures : []),
    ...(operation.method === 'GET' ? [] : writeFailures),
    ...operation.failures,
  ])
}

/** Every failure that a page can answer, in ascending order. */
export function failuresOfPage(page: Page): ErrorNumber[] {
  return ascending([...protocolFailures, ...page.failures])
}

/** Every failure of OPTIONS, on any path. */
export function failuresOfOptions(): ErrorNumber[] {
  return ascending([...protocolFailures, 50300])
}

/** The methods that each path knows: HEAD comes with GET, OPTIONS with every path. */
export const methodsByPath: ReadonlyMap<string, readonly string[]> = collectMethods()

function collectMethods(): Map<string, string[]> {
  const methods = new Map<string, string[]>()
  for (const { method, path } of Object.values(operations)) {
    methods.set(path, [...(methods.get(path) ?? []), method])
  }
  for (const { path } of Object.values(pages)) methods.set(path, ['GET'])
  for (const [path, known] of methods) {
    const head = known.includes('GET') ? ['HEAD'] : []
    methods.set(path, [...known, ...head, 'OPTIONS'].sort())
  }
  return methods
}

function ascending(numbers: ErrorNumber[]): ErrorNumber[] {
  return numbers.sort((a, b) => a - b)
}
