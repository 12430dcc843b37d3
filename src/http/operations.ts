import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { Failure } from '../contract/errors.ts'
import type { Format } from '../contract/formats.ts'
import { int64Range, toPathId } from '../contract/int64.ts'
import type { Limits } from '../contract/limits.ts'
import { toJsonSchema } from '../contract/openapi-parts.ts'
import { type Operation, type OperationName, operations } from '../contract/operations.ts'
import type { Scope } from '../contract/scopes.ts'
import { buildShapeCheck } from '../json/shape.ts'
import type { Grant, TokenVerifier } from '../tokens/verify.ts'
import { authenticate } from './authentication.ts'
import { readJson, skipBody } from './body.ts'
import { insufficientScope } from './failures.ts'
import type { Handlers } from './handlers.ts'
import { toFormat } from './negotiation.ts'
import { buildParameterReader, type Parameters } from './parameters.ts'
import { isPieces, sendPieces } from './pieces.ts'
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
}) => Promise<AnyAnswer>

interface AnyAnswer {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  readonly body: unknown
}

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

  // The order of these steps is the order of judgement that the contract promises.
  async function answer(request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> {
    const found = authenticate(request.headers.authorization, tokens)
    const grant = found instanceof Promise ? await found : found
    requireScope(grant, operation.scope)
    countRequest?.(grant.tokenId, reply)
    const id = hasId ? requireId(request) : undefined
    const parameters = readParameters(request.url, request.headers)
    const body = checkShape?.(await readJson(request.raw, reply.raw))
    if (isWriteWithoutBody) await skipBody(request.raw, reply.raw)
    if (id !== undefined && body !== undefined) requireSameId(body, id)
    const baseUrl = publicUrl ?? toBaseUrl(request.raw)
    const { tokenId } = grant
    const format = formats && toFormat(request.headers.accept, formats)
    const result = await handle({ id, parameters, body, baseUrl, tokenId, format })
    return send(reply, result, limits)
  }

  app.route({
    method: operation.method,
    url: operation.path.replace('{id}', ':id'),
    schema: { response: toResponseSchemas(operation) },
    handler: answer,
  })
}

function send(reply: FastifyReply, answer: AnyAnswer, limits: Limits): FastifyReply {
  const { status, headers, body } = answer
  // What the origin decides about is said before an operation is asked.
  const vary = [reply.getHeader('Vary'), headers.Vary].filter(Boolean).join(', ')
  reply.code(status).headers(vary === '' ? headers : { ...headers, Vary: vary })
  return isPieces(body) ? sendPieces(reply, body, limits) : reply.send(body)
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

function toResponseSchemas(operation: Operation): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(operation.successes).flatMap(([status, { shape }]) =>
      shape ? [[status, toJsonSchema(shape)]] : [],
    ),
  )
}
