import { Failure } from '../contract/errors.ts'
import { type Format, formatNames, formats } from '../contract/formats.ts'
import { cachePolicies } from '../contract/headers.ts'
import { int64Range, toPathId } from '../contract/int64.ts'
import type { Timeouts } from '../contract/limits.ts'
import type { Operation } from '../contract/operation.ts'
import { type OperationName, operations } from '../contract/operations.ts'
import type { Scope } from '../contract/scopes.ts'
import { buildShapeCheck } from '../json/shape.ts'
import type { Soon } from '../store/soon.ts'
import type { Grant, TokenVerifier } from '../tokens/verify.ts'
import { type AnyAnswer, sendAnswer } from './answer.ts'
import { authenticate } from './authentication.ts'
import { readJson, skipBody } from './body.ts'
import { addField, type Fail } from './exchange.ts'
import { insufficientScope, orFail } from './failures.ts'
import type { Handlers } from './handlers.ts'
import { toFormat } from './negotiation.ts'
import { buildParameterReader, type RequestParameters } from './parameters.ts'
import { toBaseUrl } from './protocol.ts'
import { buildRateLimit, type RateLimit } from './rate-limit.ts'
import type { Entry, Handle } from './routes.ts'

interface OperationParts {
  readonly handlers: Handlers
  readonly tokens: TokenVerifier
  readonly rateLimit: RateLimit | undefined
  readonly publicUrl: string | undefined
  readonly timeouts: Timeouts
  readonly fail: Fail
}

interface CountRequest {
  readonly countRequest: ReturnType<typeof buildRateLimit> | undefined
}

/** A handler as the one that calls it sees it: which members a call has, the operation's own type says. */
type AnyHandler = (call: {
  readonly id: bigint | undefined
  readonly parameters: Partial<RequestParameters>
  readonly body: unknown
  readonly baseUrl: string
  readonly tokenId: string
  readonly format: Format | undefined
}) => Soon<AnyAnswer>

/** Every operation of the contract, with what answers it. */
export function buildOperations(parts: OperationParts): Entry[] {
  const countRequest = parts.rateLimit && buildRateLimit(parts.rateLimit)
  return (Object.keys(operations) as OperationName[]).map((name) => {
    const { method, path } = operations[name]
    return { method, path, isPage: false, handle: buildHandle(name, { ...parts, countRequest }) }
  })
}

function buildHandle(
  name: OperationName,
  { handlers, tokens, countRequest, publicUrl, timeouts, fail }: OperationParts & CountRequest,
): Handle {
  const operation: Operation = operations[name]
  const answer = handlers[name] as unknown as AnyHandler
  const checkShape = operation.body && buildShapeCheck(operation.body.shape)
  const readParameters = buildParameterReader(operation.parameters)
  const hasId = operation.path.includes('{id}')
  const isWriteWithoutBody = operation.body === undefined && operation.method !== 'GET'
  const alternatives = operation.successes[200]?.alternatives ?? []
  const known = formatNames.filter((format) => alternatives.includes(formats[format]))

  // The order of these steps is the order of judgement that the contract promises. They call each other back: with a
  // promise for each, a request would take a tenth longer.
  return (exchange, segment) => {
    const { request, response, url } = exchange
    const { headers } = request
    const refuse = (error: unknown) => fail(exchange, error)
    addField(exchange, 'Cache-Control', cachePolicies.operation)

    function admit(grant: Grant): void {
      requireScope(grant, operation.scope)
      countRequest?.(grant.tokenId, exchange)
      const id = hasId ? requireId(segment) : undefined
      const parameters = readParameters(url, headers)
      const run = orFail((json: unknown) => {
        const body = checkShape?.(json)
        if (id !== undefined && body !== undefined) requireSameId(body, id)
        const baseUrl = publicUrl ?? toBaseUrl(request)
        const { tokenId } = grant
        const format = toFormat(headers.accept, known)
        answer({ id, parameters, body, baseUrl, tokenId, format }).then(respond, refuse)
      }, refuse)
      if (checkShape !== undefined) readJson(request, response, run, refuse)
      else if (isWriteWithoutBody) skipBody(request, response, run, refuse)
      else run(undefined)
    }

    const respond = orFail(
      (found: AnyAnswer) => sendAnswer(exchange, found, timeouts, refuse),
      refuse,
    )
    const grant = authenticate(headers.authorization, tokens)
    if (grant instanceof Promise) grant.then(orFail(admit, refuse), refuse)
    else admit(grant)
  }
}

/** An id in the body is not asked for; one that contradicts the path is a mistake of the client's. */
function requireSameId(body: object, id: bigint): void {
  if ('id' in body && body.id !== id) {
    throw new Failure(40003, 'The member "id" must be the id in the path, or be left out.')
  }
}

function requireScope(grant: Grant, scope: Scope): void {
  if (!grant.scopes.has(scope)) throw insufficientScope(scope)
}

function requireId(segment: string): bigint {
  const id = toPathId(segment)
  if (id !== undefined) return id
  throw new Failure(40004, `The id in the path must be an integer ${int64Range}, in digits.`)
}
