import { Failure } from '../contract/errors.ts'
import { operations } from '../contract/operations.ts'
import { pagePaths } from '../contract/pages.ts'
import type { Counters } from '../metrics/requests.ts'
import { type Exchange, send } from './exchange.ts'
import { sendFailure } from './failures.ts'
import { toPreflightHeaders } from './protocol.ts'

/** The methods that each path supports: HEAD comes with GET, OPTIONS with every path. */
export const methodsByPath: ReadonlyMap<string, readonly string[]> = collectMethods()

function collectMethods(): Map<string, string[]> {
  const methods = new Map<string, string[]>()
  for (const { method, path } of Object.values(operations)) {
    methods.set(path, [...(methods.get(path) ?? []), method])
  }
  for (const path of Object.values(pagePaths)) methods.set(path, ['GET'])
  for (const [path, known] of methods) {
    const head = known.includes('GET') ? ['HEAD'] : []
    methods.set(path, [...known, ...head, 'OPTIONS'].sort())
  }
  return methods
}

/** Answers a request. The id, or the name, is the last segment of a path that ends in one. */
export type Handle = (exchange: Exchange, id: string) => Promise<void>

/** An operation or a page, as the routes know it. */
export interface Entry {
  readonly name: string
  readonly method: string
  readonly path: string
  /** Whether it is served even while the service is overloaded. */
  readonly isServedUnderLoad: boolean
  readonly handle: Handle
}

type CountedEntry = Entry & { readonly counters: Counters }

/** A path of the contract. */
interface Route {
  readonly path: string
  /** The part of the path before the id, if it has one. */
  readonly prefix: string | undefined
  readonly entries: ReadonlyMap<string, CountedEntry>
  readonly allow: string
  readonly isServedUnderLoad: boolean
}

export interface FoundRoute {
  readonly route: Route
  /** Undefined for a method that the contract does not know here. */
  readonly entry: CountedEntry | undefined
  readonly id: string
}

/** Builds the look-up of routes: undefined for a path that the contract does not know. */
export function buildRoutes(entries: readonly Entry[], countersOf: (name: string) => Counters) {
  const counted = entries.map((entry) => ({ ...entry, counters: countersOf(entry.name) }))
  const byPath = Map.groupBy(counted, ({ path }) => path)
  const all = [...byPath].map(([path, known]) => toRoute(path, known))
  // A path without an id wins over one with it: `/plants/export` is not a plant.
  const routes = [
    ...all.filter((one) => one.prefix === undefined),
    ...all.filter((one) => one.prefix),
  ]

  // A few comparisons. A map would intern every requested path in V8's string table.
  return (path: string, method: string): FoundRoute | undefined => {
    for (const route of routes) {
      const id = findId(route, path)
      if (id !== undefined) return { route, entry: route.entries.get(method), id }
    }
    return undefined
  }
}

function toRoute(path: string, entries: readonly CountedEntry[]): Route {
  const byMethod = new Map(entries.map((entry) => [entry.method, entry]))
  const get = byMethod.get('GET')
  if (get !== undefined) byMethod.set('HEAD', get)
  return {
    path,
    prefix: toPrefix(path),
    entries: byMethod,
    allow: methodsByPath.get(path)?.join(', ') ?? '',
    isServedUnderLoad: entries.every((entry) => entry.isServedUnderLoad),
  }
}

function toPrefix(path: string): string | undefined {
  const [prefix, rest] = path.split('{')
  if (rest === undefined) return undefined
  if (/^\w+}$/.test(rest)) return prefix
  throw new Error(`The id must be the last segment of ${path}.`)
}

/** The id in a path of this route, empty if the route has none; undefined for another path. */
function findId({ path, prefix }: Route, asked: string): string | undefined {
  if (prefix === undefined) return asked === path ? '' : undefined
  if (!asked.startsWith(prefix) || asked.includes('/', prefix.length)) return undefined
  return asked.slice(prefix.length) || undefined
}

/** The decoded path of a URL; undefined if an escape is broken. */
export function toPath(url: string): string | undefined {
  const end = url.indexOf('?')
  const path = end === -1 ? url : url.slice(0, end)
  if (!path.includes('%')) return path
  try {
    return decodeURI(path)
  } catch {
    return undefined
  }
}

const everyMethod = [...new Set([...methodsByPath.values()].flat())].sort().join(', ')

/** Answers requests without a handler: OPTIONS, an unknown method, an unknown path. */
export function answerUnrouted(exchange: Exchange, allowedHere: string | undefined): void {
  const { method, headers } = exchange.request
  const isPreflight = headers['access-control-request-method'] !== undefined
  // The preflight of an unknown path passes, so that a browser shows our 404, not a CORS error.
  const isAnywhere = exchange.url === '*' || (method === 'OPTIONS' && isPreflight)
  const allow = allowedHere ?? (isAnywhere ? everyMethod : undefined)
  if (allow === undefined) sendFailure(exchange, nothingAt(exchange.url))
  else if (method === 'OPTIONS') {
    send(exchange, 204, { Allow: allow, ...(isPreflight ? toPreflightHeaders(allow) : {}) })
  } else {
    const message = `The method ${method} is not known here. Allowed: ${allow}.`
    sendFailure(exchange, new Failure(40500, message, { headers: { Allow: allow } }))
  }
}

/** Nothing exists at this path. */
export function nothingAt(url: string): Failure {
  const path = toPath(url) ?? ''
  const isKnown = path.endsWith('/') && methodsByPath.has(path.slice(0, -1))
  const hint = isKnown ? 'Leave out the slash at the end.' : 'See /docs.'
  return new Failure(40400, `There is nothing at this path. ${hint}`)
}
