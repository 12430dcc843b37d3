import type { IncomingHttpHeaders } from 'node:http'
import { Failure } from '../contract/errors.ts'
import { cachePolicies } from '../contract/headers.ts'
import type { Timeouts } from '../contract/limits.ts'
import type { Operation } from '../contract/operation.ts'
import { type OperationName, operations } from '../contract/operations.ts'
import { int64Range, toPathId } from '../contract/values.ts'
import { buildShapeReader } from '../json/shape.ts'
import type { Grant } from '../tokens/grant.ts'
import type { TokenVerifier } from '../tokens/verify.ts'
import { discardBody, readJson } from './body.ts'
import type { Handlers } from './calls.ts'
import { type AnyAnswer, addField, sendAnswer } from './exchange.ts'
import { insufficientScope } from './failures.ts'
import { openFileUpload } from './file-upload.ts'
import { toPreferred } from './negotiation.ts'
import { bodyEndedEarly } from './node/messages.ts'
import { buildParameterReader, type RequestParameters } from './parameters.ts'
import { buildRateLimit, type RateLimit } from './rate-limit.ts'
import type { Entry, Handle } from './routes.ts'

interface OperationParts {
  readonly handlers: Handlers
  readonly tokens: TokenVerifier
  readonly rateLimit: RateLimit | undefined
  readonly publicUrl: string | undefined
  readonly timeouts: Timeouts
  readonly isJournaled: boolean
}

type CountRequest = ReturnType<typeof buildRateLimit>

/** Any handler. The type of its own operation says which of these members a call has. */
type AnyHandler = (call: {
  readonly id: bigint | undefined
  readonly parameters: Partial<RequestParameters>
  readonly body: unknown
  readonly baseUrl: string
  readonly tokenId: string
  readonly scopes: Grant['scopes']
  readonly mediaType: string
}) => AnyAnswer | Promise<AnyAnswer>

/** Every operation of the contract, with the function that answers it. */
export function buildOperations(parts: OperationParts): Entry[] {
  const countRequest = parts.rateLimit && buildRateLimit(parts.rateLimit)
  return (Object.keys(operations) as OperationName[]).map((name) => {
    const { method, path, isServedUnderLoad }: Operation = operations[name]
    const isServed = parts.isJournaled || name !== 'listEvents'
    const handle = isServed ? buildHandle(name, parts, countRequest) : refuseEvents
    return { name, method, path, isServedUnderLoad: isServedUnderLoad === true, handle }
  })
}

/** Without a journal, its path answers 404 to every caller. */
async function refuseEvents(): Promise<void> {
  throw new Failure(40400, 'The journal is off (JOURNAL_KEEP), so there are no events.')
}

function buildHandle(
  name: OperationName,
  { handlers, tokens, publicUrl, timeouts }: OperationParts,
  countRequest: CountRequest | undefined,
): Handle {
  const operation: Operation = operations[name]
  const handler = handlers[name] as unknown as AnyHandler
  const hasId = operation.path.includes('{id}')
  const { body: declared } = operation
  const file = declared && 'format' in declared ? declared : undefined
  const expected = declared &&
    'shape' in declared && {
      mediaType: declared.mediaType,
      read: buildShapeReader(declared.shape, hasId ? ['id'] : []),
    }
  const readParameters = buildParameterReader(operation.parameters)
  const isWrite = operation.method !== 'GET'
  const { body: usual, alternatives } = operation.successes[200] ?? {}
  const usualType = usual?.mediaType ?? ''
  const mediaTypes = alternatives && [usualType, ...alternatives.map((one) => one.mediaType)]
  const baseUrl = publicUrl ?? ''

  // The order of these lines is the order of judgement that the contract promises.
  return async (exchange, segment) => {
    const { request, response, url } = exchange
    const { headers } = request
    // The issuer may take seconds, and everybody whose token is unknown shares one caller.
    const verify = () => authenticate(headers.authorization, tokens, exchange.leave)

    addField(exchange, 'Cache-Control', cachePolicies.operation)
    const verified = verify()
    const grant = verified instanceof Promise ? await verified : verified
    const { scopes, tokenId } = grant
    exchange.tokenId = tokenId
    // Counted before the scope is checked, because a 403 reports the remaining quota as well.
    const overLimit = countRequest?.(tokenId, exchange)
    if (!scopes.has(operation.scope)) throw insufficientScope(operation.scope)
    if (overLimit !== undefined) throw overLimit
    const id = hasId ? requireId(segment) : undefined
    const parameters = readParameters(url, headers)
    if (operation.method === 'PUT') refuseRange(headers)
    // The client may have left while its token was looked up: no event would end its body then.
    if (isWrite && response.destroyed) throw bodyEndedEarly()
    let body: object | undefined
    if (expected) {
      body = expected.read(await readJson(request, response, expected.mediaType))
    } else if (file) body = openFileUpload(exchange, file.mediaType, timeouts, verify)
    else if (isWrite) await discardBody(request, response)
    if (id !== undefined && body !== undefined) requireSameId(body, id)
    // A token that was revoked or expired while the body arrived writes nothing.
    if (isWrite && !tokens.isCurrent(grant)) await verify()
    const mediaType = mediaTypes ? toPreferred(headers.accept, mediaTypes) : usualType
    const answering = handler({
      id,
      parameters,
      body,
      baseUrl,
      tokenId,
      scopes,
      mediaType,
    })
    const answer = answering instanceof Promise ? await answering : answering
    const streaming = sendAnswer(exchange, answer, timeouts, verify)
    if (streaming !== undefined) await streaming
  }
}

/** The body needs no id. One that contradicts the path is a mistake. */
function requireSameId(body: object, id: bigint): void {
  if ('id' in body && body.id !== id) {
    throw new Failure(40003, 'The member "id" must be the id in the path, or be left out.')
  }
}

function refuseRange(headers: IncomingHttpHeaders): void {
  if (headers['content-range'] === undefined) return
  throw new Failure(
    40005,
    'The header Content-Range is not allowed: PUT replaces the whole plant. Send all of it.',
  )
}

function requireId(segment: string): bigint {
  const id = toPathId(segment)
  if (id !== undefined) return id
  throw new Failure(40004, `The id in the path must be an integer ${int64Range}, in digits.`)
}

const scheme = 'bearer '
const usualScheme = 'Bearer '

/** The grant of the token in the header `Authorization`. Tokens elsewhere are ignored. */
function authenticate(
  authorization: string | undefined,
  tokens: TokenVerifier,
  onWait: () => void,
): Grant | Promise<Grant> {
  const token = toToken(authorization)
  if (token === '') {
    throw new Failure(40100, 'A token is needed: send the header "Authorization: Bearer <token>".')
  }
  return tokens.verify(token, onWait)
}

/** The token in the header `Authorization`; empty if there is none. */
export function toToken(authorization = ''): string {
  const given = authorization.slice(0, scheme.length)
  const isBearer = given === usualScheme || given.toLowerCase() === scheme
  return isBearer ? authorization.slice(scheme.length).trim() : ''
}
