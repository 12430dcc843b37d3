import { type ErrorNumber, errorNumbers, errors, toStatus } from './errors.ts'
import {
  type Carried,
  type FailureResponse,
  failureResponses,
  type HeaderName,
  headers,
  headersOfHealth,
  headersOfOperation,
} from './headers.ts'
import {
  failuresOf,
  type HealthCheck,
  type JsonBody,
  json,
  type Operation,
  type Success,
  type TextBody,
} from './operation.ts'
import { healthChecks, operations } from './operations.ts'
import { idParameter, type ParameterName, parameters, toRequestName } from './parameters.ts'
import { type AnyShape, type ArrayShape, type ObjectShape, toExactJson } from './schema.ts'
import { ErrorBody } from './shapes.ts'
import { testEvent, webhookAnswers, webhookHeaders, webhooks } from './webhooks.ts'

const introduction = `A plant store over HTTP with JSON bodies.

- A 200 to a create means that the plant is on disk. The body has no id: the client chose it.
- An \`id\` is any int64, exact to the last digit everywhere. \`JSON.parse\` and generated
  TypeScript clients round it beyond 2^53: read it as a bigint.
- Every response that is neither 2xx nor 3xx has an \`Error\` body. Its \`error\` is the HTTP status
  times 100 plus a detail.
- Every state of a plant has an \`ETag\`. \`If-Match\` and \`If-None-Match\` make a request depend
  on it.
- An unknown path is 404 (40400). An unsupported method is 405 (40500) with \`Allow\`.
- Limits: a body of 8 KiB, JSON 32 levels deep, headers of 16 KiB, a URL of 8 KiB, 100 parameters
  in a query, 100 entity tags, 32 parameters of a media type; headers complete within 10 s, the
  whole request within 30 s.
- HEAD is answered wherever GET is, with the same headers and no body. OPTIONS is answered on every
  path: 204 with \`Allow\` and, to a preflight, what CORS allows.
- \`/openapi.json\` is this document, \`/docs\` shows it, and \`/\` is a web page for people. They and
  their files need no token, and have \`ETag\`, \`Cache-Control\` and gzip.
- Pages of any origin may call (CORS), unless the operator names the origins that may.
- Every response header is listed, except those of HTTP itself: \`Date\`, \`Connection\`,
  \`Keep-Alive\`, \`Content-Type\`, \`Content-Length\` and \`Transfer-Encoding\`.`

/** The document as text for people and for diffs: a part that fits into a line is one line. */
export function printOpenApi(at: { baseUrl: string }): string {
  return `${print(buildOpenApi(at), '\n')}\n`
}

function print(value: unknown, newLine: string): string {
  const line = JSON.stringify(value, null, 1).replaceAll(/\n\s*/g, ' ')
  if (line.length <= 100 || typeof value !== 'object' || value === null) return line
  const inner = `${newLine} `
  const parts = Object.entries(value).map(([name, part]) => {
    return `${Array.isArray(value) ? '' : `${JSON.stringify(name)}: `}${print(part, inner)}`
  })
  return `${line.at(0)}${inner}${parts.join(`,${inner}`)}${newLine}${line.at(-1)}`
}

/** The OpenAPI document of the service at this URL: a pure function of the contract. */
export function buildOpenApi({ baseUrl }: { baseUrl: string }): Json {
  const components = buildComponents()
  return {
    openapi: '3.1.0',
    info: {
      title: 'Plant Store',
      version: '1.0.0',
      summary: 'A plant store over HTTP with JSON.',
      description: introduction,
      contact: { name: 'Plant Store' },
      license: { name: 'MIT', identifier: 'MIT' },
    },
    servers: [{ url: baseUrl, description: 'This service' }],
    tags: [
      { name: 'plants', description: 'The plants in the store. Every request needs a token.' },
      { name: 'service', description: 'The service itself. Only the metrics need a token.' },
      {
        name: 'webhooks',
        description:
          'Requests that the service sends to receivers, which the operator names ' +
          '(`plant-store webhook add`). They are signed as Standard Webhooks says.',
      },
    ],
    security: [{ bearerAuth: [] }],
    paths: buildPaths(components),
    webhooks: buildWebhooks(components),
    components: {
      securitySchemes: {
        bearerAuth: {
          type: 'http',
          scheme: 'bearer',
          description:
            'A token from the operator (`plant-store token create`) with the scope that the ' +
            'operation names: `plants:read`, `plants:write` or `metrics:read`. Or a JSON Web Token ' +
            'of the issuer that the operator has set (`AUTH_ISSUER`), with these scopes in `scope` ' +
            'or `scp`.',
        },
      },
      ...components.collected,
    },
  }
}

/** Every webhook, under the value of its `Plant-Event`. */
function buildWebhooks(components: Components): Record<string, Json> {
  return Object.fromEntries(
    Object.entries(webhooks).map(([type, { summary, description, body }]) => [
      type,
      {
        post: {
          operationId: toOperationId(type),
          tags: ['webhooks'],
          summary,
          description,
          security: [],
          parameters: Object.entries(webhookHeaders).map(([name, header]) => {
            const parameter = { name, in: 'header', required: true, ...header }
            return name === 'Plant-Event'
              ? { ...parameter, schema: { ...header.schema, enum: [type, testEvent] } }
              : components.refer('parameters', name, () => parameter)
          }),
          requestBody: {
            required: true,
            content: { 'application/json': buildContent(components, json(body)) },
          },
          responses: Object.fromEntries(
            Object.entries(webhookAnswers).map(([status, description]) => [
              status,
              { description },
            ]),
          ),
        },
      },
    ]),
  )
}

/** For example `plantCreated`. */
function toOperationId(type: string): string {
  return type.replace(/\.(\w)/, (_, letter: string) => letter.toUpperCase())
}

/** Every path with its operations. The introduction describes HEAD, OPTIONS and the web pages. */
function buildPaths(components: Components): Record<string, Json> {
  const paths: Record<string, Json> = {}
  for (const [name, operation] of Object.entries({ ...operations, ...healthChecks })) {
    const method = operation.method.toLowerCase()
    const described = describeOperation(components, name, operation)
    paths[operation.path] = { ...paths[operation.path], [method]: described }
  }
  return paths
}

function describeOperation(
  components: Components,
  operationId: string,
  operation: Operation | HealthCheck,
): Json {
  const { summary, description, scope, path, body } = operation
  const usual = scope ? headersOfOperation : headersOfHealth
  return {
    operationId,
    summary,
    tags: [scope?.startsWith('plants:') ? 'plants' : 'service'],
    description: scope ? `${description} Requires the scope \`${scope}\`.` : description,
    ...(!scope && { security: [] }),
    parameters: [
      ...(path.includes('{id}') ? [components.refer('parameters', 'id', () => idParameter)] : []),
      ...operation.parameters.map(components.referToParameter),
    ],
    ...(body && {
      requestBody: {
        required: true,
        content: { [body.mediaType]: buildContent(components, body) },
      },
    }),
    responses: {
      ...Object.fromEntries(
        Object.entries(operation.successes).map(([status, success]) => [
          status,
          { ...buildSuccess(components, usual, success), ...buildLinks(path, success) },
        ]),
      ),
      ...buildFailures(components, failuresOf(operation)),
    },
  }
}

/** Links from a created plant to the operations on it. */
function buildLinks(path: string, { headers }: Success): Json {
  if (!('Location' in headers)) return {}
  const id = path.endsWith('{id}') ? '$request.path.id' : '$request.body#/id'
  const place = path.endsWith('{id}') ? path : `${path}/{id}`
  const there = Object.entries(operations).filter(([, operation]) => operation.path === place)
  const links = there.map(([operationId]) => [operationId, { operationId, parameters: { id } }])
  return { links: Object.fromEntries(links) }
}

function buildSuccess(
  components: Components,
  usual: Carried,
  { description, headers, body, alternatives = [] }: Success,
): Json {
  const bodies = body === undefined ? [] : [body, ...alternatives]
  const content = bodies.map((one) => [one.mediaType, buildContent(components, one)])
  return {
    description,
    headers: components.referToHeaders({ ...usual, ...headers }),
    ...(content.length > 0 && { content: Object.fromEntries(content) }),
  }
}

/** The body of a request or a response: its shape or a description, and an example. */
function buildContent({ referToShape }: Components, body: JsonBody | TextBody): Json {
  if ('shape' in body) return { schema: referToShape(body.shape), example: toExample(body.shape) }
  const { description, carries, schemaFormat: format, example } = body
  const text = { type: 'string', ...(format && { format }), description }
  const schema = carries ? referToShape(carries) : text
  return { schema, ...(example && { example }) }
}

/** A value of a shape, made of the examples of its members. */
function toExample(shape: AnyShape): unknown {
  if (shape.type === 'array') return [toExample(shape.items)]
  if (shape.type === 'integer') return shape.examples?.[0] ?? 0
  if (shape.type === 'string') return shape.enum?.[0] ?? shape.examples?.[0]
  const members = Object.entries(shape.properties)
    .filter(([name, member]) => shape.required.includes(name) || 'examples' in member)
    .map(([name, member]) => [name, toExample(member)])
  return Object.fromEntries(members)
}

/**
 * The failures of an operation. A status has one response, with all of its error numbers; where an
 * operation has fewer of them, its reference says which.
 */
function buildFailures(components: Components, numbers: readonly ErrorNumber[]): Json {
  const byStatus = Map.groupBy(numbers, toStatus)
  return Object.fromEntries(
    [...byStatus].map(([status, own]) => {
      const all = errorNumbers.filter((number) => toStatus(number) === status)
      const [name, carried] = failureResponses[status] as FailureResponse
      const build = () => buildFailure(components, all, carried)
      const response = components.refer('responses', name, build)
      if (all.length === own.length) return [status, response]
      return [status, { ...response, description: `Unexpected error: ${own.join(', ')}.` }]
    }),
  )
}

function buildFailure(
  { referToHeaders, referToShape }: Components,
  numbers: readonly ErrorNumber[],
  carried: Carried,
): Json {
  const examples = numbers.map((number) => [
    number,
    { value: { error: number, message: errors[number] } },
  ])
  return {
    description: numbers.map((number) => `${number}: ${errors[number]}`).join('\n\n'),
    headers: referToHeaders(carried),
    content: {
      'application/json': {
        schema: referToShape(ErrorBody),
        examples: Object.fromEntries(examples),
      },
    },
  }
}

/** A part of the document. */
export type Json = Record<string, unknown>

/** The parts of the document that are written once and referenced elsewhere. */
type Components = ReturnType<typeof buildComponents>

/** Builds an empty collection. A part is added under its name when it is first referenced. */
function buildComponents() {
  const collected = { schemas: {}, parameters: {}, headers: {}, responses: {} } as Record<
    Kind,
    Json
  >

  function refer(kind: Kind, name: string, build: () => Json): Json {
    collected[kind][name] ??= toJson(build())
    return { $ref: `#/components/${kind}/${name}` }
  }

  /** Refers to a shape by its title, and from it to the shapes of its parts. */
  function referToShape(shape: ObjectShape | ArrayShape): Json {
    return refer('schemas', shape.title, () => ({ ...shape, ...referToParts(shape) }))
  }

  function referToParts(shape: ObjectShape | ArrayShape): Json {
    if (shape.type === 'array') return { items: referToMember(shape.items) }
    const properties = Object.entries(shape.properties).map(([name, member]) => [
      name,
      referToMember(member),
    ])
    return { properties: Object.fromEntries(properties) }
  }

  function referToMember(member: ObjectShape['properties'][string]) {
    if (member.type === 'object') return referToShape(member)
    return member.type === 'array' ? { ...member, ...referToParts(member) } : member
  }

  function referToHeaders(carried: Carried): Json {
    const names = Object.keys(carried) as HeaderName[]
    return Object.fromEntries(names.map((name) => [name, referToHeader(name, carried[name])]))
  }

  /** The first form of a header gets its plain name, a second one a suffix. */
  function referToHeader(name: HeaderName, form: Carried[HeaderName]): Json {
    const { description, schema, example } = headers[name]
    const required = form === 'required' && { required: true }
    const known = collected.headers[name] as Json | undefined
    const isOther = known !== undefined && 'required' in known !== (form === 'required')
    const header = { description, ...required, schema, example }
    return refer('headers', isOther ? `${name}-${form}` : name, () => header)
  }

  function referToParameter(name: ParameterName): Json {
    return refer('parameters', name, () => ({ ...parameters[name], name: toRequestName(name) }))
  }

  return { collected, refer, referToShape, referToHeaders, referToParameter }
}

type Kind = 'schemas' | 'parameters' | 'headers' | 'responses'

/** A part as JSON. A bigint keeps all of its digits. */
function toJson(value: unknown): unknown {
  if (typeof value === 'bigint') return toExactJson(value)
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return value
  return Object.fromEntries(Object.entries(value).map(([key, member]) => [key, toJson(member)]))
}
