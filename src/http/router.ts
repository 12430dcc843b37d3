import type { IncomingHttpHeaders, ServerResponse } from 'node:http'
import { Failure, overloaded } from '../contract/errors.ts'
import { cachePolicies, contentTypeOptions } from '../contract/headers.ts'
import { limits } from '../contract/limits.ts'
import type { Operation } from '../contract/operation.ts'
import {
  healthChecks,
  type OperationName,
  operations,
  type PageName,
  pagePaths,
} from '../contract/operations.ts'
import type { BodyShape } from '../contract/schema.ts'
import type { NewPlant, Plant } from '../contract/shapes.ts'
import { int64Range, toPathId } from '../contract/values.ts'
import { buildShapeReader } from '../json/plant-json.ts'
import {
  buildUnreadCount,
  type Exchange,
  newRequestId,
  recordAnswer,
  send,
  toChallenge,
  toFailure,
  toFailureAnswer,
} from './answer.ts'
import type { App } from './app.ts'
import { type Call, handlers } from './handlers.ts'
import { type FileUpload, openFileUpload } from './imports.ts'
import { bodyEndedEarly } from './node/bodies.ts'
import {
  allowOrigin,
  findProtocolFault,
  isLastRequest,
  toOriginForm,
  toPath,
  toPreflightHeaders,
} from './protocol.ts'
import { buildRateLimit } from './rate-limit.ts'
import {
  buildParameterReader,
  discardBody,
  readBearer,
  readJson,
  toPreferred,
} from './read-request.ts'
import { buildPages, nothingThere, type Page } from './web-pages.ts'

/** A path of the contract. */
interface Route {
  readonly path: string
  /** The part of the path before the id, or the name, if it ends in one. */
  readonly prefix: string | undefined
  /** By method. */
  readonly endpoints: ReadonlyMap<string, Endpoint>
}

/** A method of a path: a page, or an operation of the contract. */
type Endpoint = ReturnType<typeof toPageEndpoint> | ReturnType<typeof toEndpoint>

/** The route of a request. */
export interface Found {
  readonly route: Route
  /** Undefined for a method that the contract does not know here. */
  readonly endpoint: Endpoint | undefined
  /** The id, or the name, at the end of the path. */
  readonly segment: string
}

/** Builds the function that answers requests. */
export function buildRouter(app: App) {
  const { store, tokens, metrics, log, settings, timeouts } = app
  const findRoute = buildRoutes(app)
  const countUnread = buildUnreadCount()
  const unrouted = metrics.countersOf()
  const countRequest = settings.rateLimit && buildRateLimit(settings.rateLimit)

  /** The order of these lines is the order of judgement that the contract promises. */
  async function serve(
    exchange: Exchange,
    found: Found | undefined,
    waitedMs: number,
  ): Promise<void> {
    const { request, response, url, fields, leave } = exchange
    const { headers } = request
    // Route. HTTP itself: 400, 414, 417, 505
    const fault = findProtocolFault(exchange)
    if (fault !== undefined) throw fault
    // overload: 503
    const isLate = waitedMs > limits.gateWaitMs
    if ((isLate || store.isFull()) && !found?.endpoint?.isServedUnderLoad) {
      throw overloaded(isLate ? 'gate' : 'write_queue')
    }
    // the path and the method: 404, 405
    const { endpoint, segment = '' } = found ?? {}
    if (endpoint === undefined) return answerWithoutEndpoint(exchange)
    const isJournalOff = settings.journalKeepMs === 'off'
    if (isJournalOff && endpoint.name === 'listEvents') throw journalOff()
    if (endpoint.caching !== undefined) fields.push('Cache-Control', endpoint.caching)
    if ('page' in endpoint) return await endpoint.page(exchange, segment)
    // Judge. The token: 401. Those that are not known yet are one caller, so one that waits for the
    // keys of its issuer leaves its place to others.
    const verify = () => tokens.verify(requireToken(headers), leave)
    const verified = verify()
    const grant = verified instanceof Promise ? await verified : verified
    const { tokenId, scopes } = grant
    exchange.tokenId = tokenId
    // its scope and its rate: 403, 429. The rate is counted first: a 403 has the quota left, too.
    const { operation, mediaTypes } = endpoint
    const overLimit = countRequest?.(tokenId, exchange)
    if (!scopes.has(operation.scope)) throw insufficientScope(operation.scope)
    if (overLimit !== undefined) throw overLimit
    // the id in the path, the query, the headers: 400
    const id = endpoint.hasId ? requireId(segment) : undefined
    const parameters = endpoint.readParameters(url, headers)
    if (operation.method === 'PUT') refuseRange(headers)
    // Read. The body, by its media type, its size, its JSON, its shape: 415, 413, 400
    const isWrite = operation.method !== 'GET'
    // The client may have left while its token was looked up: no event would end its body then.
    if (isWrite && response.destroyed) throw bodyEndedEarly()
    let plant: NewPlant | undefined
    let file: FileUpload | undefined
    if (endpoint.readPlant) plant = endpoint.readPlant(await readJson(request, response), id)
    else if (endpoint.file) file = openFileUpload(exchange, endpoint.file, timeouts, verify)
    else if (isWrite) await discardBody(request, response)
    // the token again: one that was revoked or expired while the body arrived writes nothing
    if (isWrite && !tokens.isCurrent(grant)) await verify()
    // Handle. What is stored: 404, 409, 410, 412, 422
    const mediaType = mediaTypes.length > 1 ? toPreferred(headers.accept, mediaTypes) : ''
    const call = { app, id, plant, file, parameters, tokenId, scopes, mediaType } as Call
    const answering = endpoint.handler(call)
    const made = answering instanceof Promise ? await answering : answering
    // Answer.
    if (typeof made.body === 'function') {
      leave()
      await made.body(exchange, made.headers, verify)
    } else send(exchange, made.status, made.headers, made.body, made.contentType)
  }

  function toExchange(response: ServerResponse, leave: () => void): [Exchange, Found | undefined] {
    const request = response.req
    const url = toOriginForm(request.url ?? '')
    const path = toPath(url)
    const found = path === undefined ? undefined : findRoute(path, request.method ?? '')
    const id = newRequestId()
    const exchange: Exchange = {
      id,
      request,
      response,
      url,
      path,
      route: found?.route.path,
      fields: ['X-Request-Id', id, 'X-Content-Type-Options', contentTypeOptions],
      tokenId: undefined,
      error: undefined,
      startedAt: performance.now(),
      counters: found?.endpoint?.counters ?? unrouted,
      leave,
      countUnread,
    }
    if (app.isDraining || isLastRequest(request)) exchange.fields.push('Connection', 'close')
    // Every answer carries these headers, whatever becomes of the request.
    allowOrigin(exchange, settings.allowedOrigins)
    return [exchange, found]
  }

  function fail(exchange: Exchange, error: unknown): void {
    const failure = toFailure(error)
    log.fail(exchange, failure)
    exchange.error = failure.number
    // A part of the answer was sent. Only a cut connection can tell the client that it failed.
    if (exchange.response.headersSent) {
      exchange.response.destroy()
      recordAnswer(exchange, exchange.response.statusCode, 0)
    } else {
      metrics.countRefusal(failure)
      const { status, headers, body } = toFailureAnswer(failure)
      send(exchange, status, headers, body)
    }
  }

  /** Answers a request. Those before it on its connection have been answered. */
  return (response: ServerResponse, leave: () => void, waitedMs: number): void => {
    // A request after a closing answer is not executed: it could not be answered (RFC 9112, 9.6).
    if (!response.req.socket.writable) {
      leave()
      return
    }
    const [exchange, found] = toExchange(response, leave)
    exchange.counters.begun++
    if (log.hasRequests) log.begin(exchange)
    serve(exchange, found, waitedMs).catch((error: unknown) => fail(exchange, error))
  }
}

/** The methods that each path supports: HEAD comes with GET, OPTIONS with every path. */
export const methodsByPath: ReadonlyMap<string, readonly string[]> = collectMethods()
const everyMethod = [...new Set([...methodsByPath.values()].flat())].sort().join(', ')

function collectMethods(): Map<string, string[]> {
  const pages = Object.values(pagePaths).map((path) => ({ path, method: 'GET' }))
  const byPath = Map.groupBy([...Object.values(operations), ...pages], ({ path }) => path)
  return new Map(
    [...byPath].map(([path, known]) => {
      const methods = known.map(({ method }) => method)
      const head = methods.includes('GET') ? ['HEAD'] : []
      return [path, [...methods, ...head, 'OPTIONS'].sort()]
    }),
  )
}

/** Builds the look-up of routes: undefined for a path that the contract does not know. */
function buildRoutes(app: App) {
  const names = Object.keys(operations) as OperationName[]
  const pages = Object.entries(buildPages(app)) as [PageName, Page][]
  const endpoints: Endpoint[] = [
    ...names.map((name) => toEndpoint(app, name)),
    ...pages.map(([name, page]) => toPageEndpoint(app, name, page)),
  ]
  const byPath = Map.groupBy(endpoints, ({ path }) => path)
  const routes = [...byPath].map(([path, known]) => toRoute(path, known))

  // A few comparisons. A map would intern every requested path in V8's string table.
  return (path: string, method: string): Found | undefined => {
    for (const route of routes) {
      const segment = findSegment(route, path)
      if (segment === undefined) continue
      return { route, endpoint: route.endpoints.get(method), segment }
    }
    return undefined
  }
}

function toRoute(path: string, known: readonly Endpoint[]): Route {
  const endpoints = new Map(known.map((endpoint) => [endpoint.method, endpoint]))
  const get = endpoints.get('GET')
  if (get !== undefined) endpoints.set('HEAD', get)
  const [prefix, segment] = path.split('{')
  return { path, prefix: segment === undefined ? undefined : prefix, endpoints }
}

/** What a path of this route has for `{id}` or `{name}`, maybe nothing; undefined for others. */
function findSegment({ path, prefix }: Route, asked: string): string | undefined {
  if (prefix === undefined) return asked === path ? '' : undefined
  if (!asked.startsWith(prefix) || asked.includes('/', prefix.length)) return undefined
  return asked.slice(prefix.length) || undefined
}

function toPageEndpoint({ metrics }: App, name: PageName, page: Page) {
  return {
    name,
    method: 'GET',
    path: pagePaths[name],
    /** Whether it is served even while the service is overloaded. */
    isServedUnderLoad: true,
    /** The `Cache-Control` of all its answers; otherwise each has its own, if any. */
    caching: name in healthChecks ? cachePolicies.health : undefined,
    counters: metrics.countersOf(name),
    page,
  }
}

function toEndpoint({ metrics }: App, name: OperationName) {
  const operation: Operation = operations[name]
  const { method, path, body, isServedUnderLoad = false } = operation
  const success = operation.successes[200]
  const bodies = success?.body ? [success.body, ...(success.alternatives ?? [])] : []
  const hasId = path.includes('{id}')
  return {
    name,
    method,
    path,
    isServedUnderLoad,
    caching: cachePolicies.operation,
    counters: metrics.countersOf(name),
    operation,
    handler: handlers[name],
    hasId,
    readParameters: buildParameterReader(operation.parameters),
    readPlant: body && 'shape' in body ? buildPlantReader(body.shape, hasId) : undefined,
    file: body && 'format' in body ? body : undefined,
    /** The media types of its success, the usual one first. */
    mediaTypes: bodies.map(({ mediaType }) => mediaType),
  }
}

/** Builds the reader of a plant. The id in the path is its id; the body may repeat it. */
function buildPlantReader(shape: BodyShape, hasId: boolean) {
  const read = buildShapeReader(shape, hasId ? ['id'] : [])
  return (text: string, pathId: bigint | undefined): NewPlant => {
    // Beside the id in the path, that of the body is unchecked: any other value is refused.
    const { id = pathId as bigint, name, tag } = read(text) as Partial<NewPlant> & Plant
    if (pathId !== undefined && id !== pathId) {
      throw new Failure(40003, 'The member "id" must be the id in the path, or be left out.')
    }
    return tag === undefined ? { id, name } : { id, name, tag }
  }
}

function requireId(segment: string): bigint {
  const id = toPathId(segment)
  if (id !== undefined) return id
  throw new Failure(40004, `The id in the path must be an integer ${int64Range}, in digits.`)
}

function refuseRange(headers: IncomingHttpHeaders): void {
  if (headers['content-range'] === undefined) return
  throw new Failure(
    40005,
    'The header Content-Range is not allowed: PUT replaces the whole plant. Send all of it.',
  )
}

/** Answers requests without an endpoint: OPTIONS, an unknown method, an unknown path. */
function answerWithoutEndpoint(exchange: Exchange): void {
  const { request, url, path = '', route = '' } = exchange
  const { method, headers } = request
  const isPreflight = headers['access-control-request-method'] !== undefined
  // The preflight of an unknown path passes, so that a browser shows our 404, not a CORS error.
  const isAnywhere = url === '*' || (method === 'OPTIONS' && isPreflight)
  const allow = methodsByPath.get(route)?.join(', ')
  const methods = allow ?? (isAnywhere ? everyMethod : undefined)
  if (methods === undefined) {
    const isKnown = path.endsWith('/') && methodsByPath.has(path.slice(0, -1))
    throw isKnown ? nothingThere('Leave out the slash at the end.') : nothingThere()
  }
  if (method !== 'OPTIONS') {
    const message = `The method ${method} is not known here. Allowed: ${methods}.`
    throw new Failure(40500, message, { headers: { Allow: methods } })
  }
  send(exchange, 204, { Allow: methods, ...(isPreflight && toPreflightHeaders(methods)) })
}

function journalOff(): Failure {
  return new Failure(40400, 'The journal is off (JOURNAL_KEEP), so there are no events.')
}

/** The token of a request. Tokens elsewhere are ignored. */
function requireToken(headers: IncomingHttpHeaders): string {
  const token = readBearer(headers)
  if (token !== '') return token
  throw new Failure(40100, 'A token is needed: send the header "Authorization: Bearer <token>".')
}

function insufficientScope(scope: string): Failure {
  return new Failure(40300, `The token lacks the scope ${scope}.`, {
    headers: toChallenge('insufficient_scope', scope),
  })
}
