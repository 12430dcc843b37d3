import { headersOfFailures, headersOfSuccess, type Subject } from './carried-headers.ts'
import { type ErrorNumber, type ErrorStatus, errors, toStatus } from './errors.ts'
import { bareFailures } from './failures.ts'
import type { Components, Json } from './openapi-components.ts'
import type { JsonBody, Success, TextBody } from './operation.ts'
import { ErrorBody } from './shapes.ts'

/** The prefix of response names, by status. */
const statusNames: Record<ErrorStatus, string> = {
  400: 'BadRequest',
  401: 'Unauthorized',
  403: 'Forbidden',
  404: 'NotFound',
  405: 'MethodNotAllowed',
  408: 'RequestTimeout',
  409: 'Conflict',
  410: 'Gone',
  412: 'PreconditionFailed',
  413: 'ContentTooLarge',
  414: 'UriTooLong',
  415: 'UnsupportedMediaType',
  417: 'ExpectationFailed',
  422: 'UnprocessableContent',
  429: 'TooManyRequests',
  431: 'HeadersTooLarge',
  500: 'InternalServerError',
  503: 'ServiceUnavailable',
  504: 'GatewayTimeout',
  505: 'HttpVersionNotSupported',
  507: 'InsufficientStorage',
}

export function buildSuccess(
  components: Components,
  subject: Subject,
  { description, headers, optionalHeaders = [], body, alternatives = [] }: Success,
): Json {
  const carried = headersOfSuccess(subject, { always: headers, sometimes: optionalHeaders })
  const bodies = body === undefined ? [] : [body, ...alternatives]
  const content = bodies.map((one) => [one.mediaType, buildContent(components, one)])
  return {
    description,
    headers: components.referToHeaders(carried),
    ...(content.length > 0 && { content: Object.fromEntries(content) }),
  }
}

/** The body of a request or a response: its shape, or a description. */
export function buildContent({ referToShape }: Components, body: JsonBody | TextBody): Json {
  if ('shape' in body) return { schema: referToShape(body.shape) }
  const { description, example } = body
  return { schema: { type: 'string', description }, ...(example && { example }) }
}

/** One response for each status, with an example for each error number of that status. */
export function buildFailures(
  components: Components,
  subject: Subject,
  numbers: readonly ErrorNumber[],
): Json {
  const byStatus = Map.groupBy(numbers, toStatus)
  return Object.fromEntries(
    [...byStatus].map(([status, sharing]) => [
      status,
      components.referToResponse(toName(subject, sharing), () =>
        buildFailure(components, subject, sharing),
      ),
    ]),
  )
}

function buildFailure(
  { referToHeaders, referToShape }: Components,
  subject: Subject,
  numbers: readonly ErrorNumber[],
): Json {
  const examples = numbers.map((number) => [
    number,
    { summary: errors[number], value: { error: number, message: errors[number] } },
  ])
  const content = {
    'application/json': { schema: referToShape(ErrorBody), examples: Object.fromEntries(examples) },
  }
  return {
    description: numbers.map((number) => `${number}: ${errors[number]}`).join('\n\n'),
    headers: referToHeaders(headersOfFailures(subject, numbers)),
    content,
  }
}

/** For example `NotFound_40401`. */
function toName(subject: Subject, numbers: readonly ErrorNumber[]): string {
  const [first = 50000] = numbers
  // Protocol failures are the same everywhere.
  const isShared = numbers.every((number) => bareFailures.includes(number))
  return [
    statusNames[String(toStatus(first)) as ErrorStatus],
    ...numbers,
    ...(isShared || subject === 'operation'
      ? []
      : [`${subject[0]?.toUpperCase()}${subject.slice(1)}`]),
  ].join('_')
}
