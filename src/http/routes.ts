import { methodsByPath } from '../contract/operations.ts'
import type { Exchange } from './exchange.ts'

/** Answers what a method asks for at a path. The id is the segment of the path that stands for one. */
export type Handle = (exchange: Exchange, id: string) => void

/** What is at a path of the contract. */
export interface Route {
  readonly path: string
  readonly handles: Map<string, Handle>
  readonly allow: string
  /** Anybody may read it, even while the service is overloaded. */
  readonly isPage: boolean
}

export interface FoundRoute {
  readonly route: Route
  readonly id: string
}

/** What an operation or a page brings with it to be found. */
export interface Entry {
  readonly method: string
  readonly path: string
  readonly isPage: boolean
  readonly handle: Handle
}

const idSegment = '{id}'

/** Builds the look-up of what is at a path: undefined for a path that the contract does not know. */
export function buildRoutes(entries: readonly Entry[]) {
  const fixed = new Map<string, Route>()
  const byPrefix = new Map<string, Route>()
  for (const { method, path, isPage, handle } of entries) {
    const routes = path.endsWith(idSegment) ? byPrefix : fixed
    const key = path.replace(idSegment, '')
    const allow = methodsByPath.get(path)?.join(', ') ?? ''
    const route = routes.get(key) ?? { path, handles: new Map(), allow, isPage }
    routes.set(key, route)
    route.handles.set(method, handle)
    if (method === 'GET') route.handles.set('HEAD', handle)
  }

  return (path: string): FoundRoute | undefined => {
    const route = fixed.get(path)
    if (route !== undefined) return { route, id: '' }
    const end = path.lastIndexOf('/') + 1
    const named = byPrefix.get(path.slice(0, end))
    return named === undefined || end === path.length
      ? undefined
      : { route: named, id: path.slice(end) }
  }
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
