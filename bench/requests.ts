/** One kind of request, as the generator sends it: `{id}` in the path and the body is where the id goes. */
export interface Pattern {
  readonly method: 'GET' | 'POST'
  readonly path: string
  readonly body?: string
  /** What a right answer has. */
  readonly status: number
  /** The next id that nobody has used, or any id of a stretch. */
  readonly ids:
    | { readonly kind: 'next'; readonly first: number }
    | { readonly kind: 'any'; readonly first: number; readonly count: number }
}

/** What a system is asked, in the words that it understands. */
export interface Requests {
  readonly create: Pattern
  readonly get: Pattern
  readonly list: Pattern
}

export type Operation = keyof Requests
export type Workload = Operation | 'mixed'

// All ids have nine digits, so that all requests and nearly all answers of a kind are of one length.
export const firstSeedId = 100_000_000
const firstNewId = 500_000_000
export const seedCount = 1_000
export const pageSize = 100

export const token = 'a-token-for-the-benchmark'
export const plantBody = '{"id":{id},"name":"Monstera deliciosa","tag":"indoor"}'

/** The requests of Plant Store, for a store that holds this many plants from the first seed on. */
export function toRequests(stored: number, createStatus: number): Requests {
  return {
    create: {
      method: 'POST',
      path: '/plants',
      body: plantBody,
      status: createStatus,
      ids: { kind: 'next', first: firstNewId },
    },
    get: {
      method: 'GET',
      path: '/plants/{id}',
      status: 200,
      ids: { kind: 'any', first: firstSeedId, count: stored },
    },
    list: {
      method: 'GET',
      path: `/plants?limit=${pageSize}&after={id}`,
      status: 200,
      ids: { kind: 'any', first: firstSeedId, count: stored - pageSize },
    },
  }
}

/** The same creates, of the plants that are there before anything is measured. */
export function toSeeds(create: Pattern): Pattern {
  return { ...create, ids: { kind: 'next', first: firstSeedId } }
}

/** The requests of a workload, in the order in which they take turns. */
export function toCycle({ create, get, list }: Requests, workload: Workload): Pattern[] {
  if (workload === 'mixed') return [get, get, get, get, create]
  return [{ create, get, list }[workload]]
}
