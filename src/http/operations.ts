import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { Failure } from '../contract/errors.ts'
import type { Format } from '../contract/formats.ts'
import { int64Range, toPathId } from '../contract/int64.ts'
import type { Limits } from '../contract/limits.ts'
import { type Operation, type OperationName, operations } from '../contract/operations.ts'
import type { Scope } from '../contract/scopes.ts'
import { buildShapeCheck } from '../json/shape.ts'
import type { Soon } from '../store/soon.ts'
import type { Grant, TokenVerifier } from '../tokens/verify.ts'
import { type AnyAnswer, sendAnswer } from './answer.ts'
import { authenticate } from './authentication.ts'
import { readJson, skipBody } from './body.ts'
import { insufficientScope, orFail, toFailure } from './failures.ts'
import type { Handlers } from './handlers.ts'
import { toFormat } from './negotiation.ts'
import { buildParameterReader, type Parameters } from './parameters.ts'
import { toBaseUrl } from './protocol.ts'
import { buildRateLimit, type RateLimit } from './rate-limit.ts'

interface OperationParts {
  readonly handlers: Handlers
  readonly tokens: TokenVerifier
  readonly rateLimit: RateLimit | undefined
  readonly publicUrl: string | undefined
  readonly limits: Limits
}

interface CountRequest {
  readonly countRequest: ReturnType<typeof buildRateLimit> | undefined
}

/** A handler as the one that calls it sees it: which members a call has, the operation's own type says. */
type AnyHandler = (call: {
  readonly id: bigint | undefined
  readonly parameters: Partial<Parameters>
  readonly body: unknown
  readonly baseUrl: string
  readonly tokenId: string
  readonly format: Format | undefined
}) => Soon<AnyAnswer>

/** Registers every operation of the contract with its handler. */
export function addOperations(app: FastifyInstance, parts: OperationParts): void {
  // Fastify would read the body itself, and close the connection whenever it is not valid.
  for (const method of ['POST', 'PUT', 'DELETE']) {
    app.addHttpMethod(method, { hasBody: false, overrideExisting: true })
  }
  const countRequest = parts.rateLimit && buildRateLimit(parts.rateLimit)
  for (const name of Object.keys(operations) as OperationName[]) {
    addOperation(app, name, { ...parts, countRequest })
  }
}

function addOperation(
  app: FastifyInstance,
  name: OperationName,
  { handlers, tokens, countRequest, publicUrl, limits }: OperationParts & CountRequest,
): void {
  const operation: Operation = operations[name]
  const handle = handlers[name] as unknown as AnyHandler
  const checkShape = operation.body && buildShapeCheck(operation.body)
  const readParameters = buildParameterReader(operation.parameters)
  const hasId = operation.path.includes('{id}')
  const isWriteWithoutBody = operation.body === undefined && operation.method !== 'GET'
  const formats = operation.successes[200]?.formats

  // The order of these steps is the order of judgement that the contract promises. They call each other back: with a
  // promise for each, a request would take a tenth longer.
  function answer(request: FastifyRequest, reply: FastifyReply): void {
    const fail = (error: unknown) => void reply.send(toFailure(error))

    function admit(grant: Grant): void {
      requireScope(grant, operation.scope)
      countRequest?.(grant.tokenId, reply)
      const id = hasId ? requireId(request) : undefined
      const parameters = readParameters(request.url, request.headers)
      const run = orFail((json: unknown) => {
        const body = checkShape?.(json)
        if (id !== undefined && body !== undefined) requireSameId(body, id)
        const baseUrl = publicUrl ?? toBaseUrl(request.raw)
        const { tokenId } = grant
        const format = formats && toFormat(request.headers.accept, formats)
        handle({ id, parameters, body, baseUrl, tokenId, format }).then(respond, fail)
      }, fail)
      if (checkShape !== undefined) readJson(request.raw, reply.raw, run, fail)
      else if (isWriteWithoutBody) skipBody(request.raw, reply.raw, run, fail)
      else run(undefined)
    }

    const respond = orFail((result: AnyAnswer) => sendAnswer(reply, result, limits), fail)
    const grant = authenticate(request.headers.authorization, tokens)
    if (grant instanceof Promise) grant.then(orFail(admit, fail), fail)
    else admit(grant)
  }

  app.route({
    method: operation.method,
    url: operation.path.replace('{id}', ':id'),
    handler: answer,
  })
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

function requireId(request: FastifyRequest): bigint {
  const id = toPathId((request.params as { id: string }).id)
  if (id !== undefined) return id
  throw new Failure(40004, `The id in the path must be an integer ${int64Range}, in digits.`)
}
