import { methodsByPath } from '../contract/methods.ts'
import type { Exchange } from './exchange.ts'

/** Answers what a method asks for at a path. The id is the segment of the path that stands for one. */
export type Handle = (exchange: Exchange, id: string) => void

/** What an operation or a page brings with it to be found. */
export interface Entry {
  readonly method: string
  readonly path: string
  readonly isPage: boolean
  readonly handle: Handle
}

/** What is at a path of the contract. */
export interface Route {
  readonly path: string
  /** What the path begins with, if an id follows. */
  readonly prefix: string | undefined
  readonly handles: ReadonlyMap<string, Handle>
  readonly allow: string
  /** Anybody may read it, even while the service is overloaded. */
  readonly isPage: boolean
}

export interface FoundRoute {
  readonly route: Route
  readonly id: string
}

/** Builds the look-up of what is at a path: undefined for a path that the contract does not know. */
export function buildRoutes(entries: readonly Entry[]) {
  const byPath = Map.groupBy(entries, ({ path }) => path)
  const routes = [...byPath].map(([path, known]) => toRoute(path, known))

  // A few comparisons: a map would keep every path that was ever asked for in V8's table of strings.
  return (path: string): FoundRoute | undefined => {
    for (const route of routes) {
      const id = findId(route, path)
      if (id !== undefined) return { route, id }
    }
    return undefined
  }
}

function toRoute(path: string, entries: readonly Entry[]): Route {
  const handles = new Map(entries.map(({ method, handle }) => [method, handle]))
  const get = handles.get('GET')
  if (get !== undefined) handles.set('HEAD', get)
  return {
    path,
    prefix: path.endsWith('{id}') ? path.replace('{id}', '') : undefined,
    handles,
    allow: methodsByPath.get(path)?.join(', ') ?? '',
    isPage: entries.every(({ isPage }) => isPage),
  }
}

/** The id in a path that leads to a route, empty if the route has none; undefined for a path that leads elsewhere. */
function findId({ path, prefix }: Route, asked: string): string | undefined {
  if (prefix === undefined) return asked === path ? '' : undefined
  if (!asked.startsWith(prefix) || asked.includes('/', prefix.length)) return undefined
  return asked.slice(prefix.length) || undefined
}

/** The path of a URL, without its escapes: undefined if one of them is broken. */
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
