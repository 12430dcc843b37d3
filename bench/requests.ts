/** One kind of request. `{id}` in its path and body marks where the id goes. */
export interface Pattern {
  readonly method: 'GET' | 'POST'
  readonly path: string
  readonly body?: string
  /** The status of a correct answer. */
  readonly status: number
  /** The next unused id, or a random id of a range. */
  readonly ids:
    | { readonly kind: 'next'; readonly first: number }
    | { readonly kind: 'any'; readonly first: number; readonly count: number }
}

/** The requests of the benchmark, as one system understands them. */
export interface Requests {
  readonly create: Pattern
  readonly get: Pattern
  readonly list: Pattern
}

export const operations = ['create', 'get', 'list'] as const
export type Operation = (typeof operations)[number]
/** `large` creates plants of 7 kB; four of five requests of `mixed` are gets, one is a create. */
export type Workload = Operation | 'large' | 'mixed'

// Ids have nine digits, so that requests, and nearly all answers, of one kind have one length.
export const firstSeedId = 100_000_000
const firstNewId = 500_000_000
const firstLargeId = 700_000_000
export const seedCount = 1_000
export const pageSize = 100

export const token = 'a-token-for-the-benchmark'
const name = 'Monstera deliciosa'
export const plantBody = `{"id":{id},"name":"${name}","tag":"indoor"}`
const largeName = name.padEnd(7_000, ' and more')

/** The requests of Plant Store, for a store with this many seeded plants. */
export function toRequests(stored: number, createStatus = 200): Requests {
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

/** Turns the create request into one that seeds the store before the measurement. */
export function toSeeds(create: Pattern): Pattern {
  return { ...create, ids: { kind: 'next', first: firstSeedId } }
}

/** The requests of a workload, in the order in which they are sent. */
export function toCycle({ create, get, list }: Requests, workload: Workload): Pattern[] {
  if (workload === 'mixed') return [get, get, get, get, create]
  if (workload === 'large') return [toLarge(create)]
  return [{ create, get, list }[workload]]
}

function toLarge(create: Pattern): Pattern {
  const body = create.body?.replace(name, largeName) ?? ''
  return { ...create, body, ids: { kind: 'next', first: firstLargeId } }
}

/** The path of the next page, from the `Link` of the last; undefined if that was the last page. */
export function toNextPath(link: string | string[] | undefined): string | undefined {
  return /<(?:https?:\/\/[^/]+)?([^>]+)>; rel="next"/.exec(String(link ?? ''))?.[1]
}
