import type { TSchema } from 'typebox'
import { type ErrorNumber, errors, toStatus } from './errors.ts'
import { type HeaderName, headers } from './headers.ts'
import {
  failuresOf,
  failuresOfPage,
  type Operation,
  operations,
  type Page,
  pages,
  type Success,
} from './operations.ts'
import { parameters } from './parameters.ts'
import { ErrorBody, Health, NewPlant, Plant, StoredPlant, StoredPlants } from './shapes.ts'

type Json = Record<string, unknown>

const shapes = { Plant, NewPlant, StoredPlant, StoredPlants, Error: ErrorBody, Health }

const introduction = `A plant store over HTTP with JSON bodies.

- A 200 to a create means that the plant is on disk.
- An \`id\` is any int64 and is exact to the last digit, in requests and in answers.
- Every answer that is not a success has an \`Error\` body. Its \`error\` is the HTTP status times 100 plus a detail.
- A state of a plant has an \`ETag\`; \`If-Match\` and \`If-None-Match\` make a request depend on it.
- HEAD is answered wherever GET is. OPTIONS answers 204 with \`Allow\`. Another method on a known path is 405 (40500)
  with \`Allow\`, an unknown path is 404 (40400).
- Limits: a body of 1 MiB, JSON 32 containers deep, headers of 16 KiB, a URL of 8 KiB; the headers complete within
  10 s, the whole request within 30 s.
- Pages of any origin may call (CORS), unless the operator narrows it: every answer to a request with an \`Origin\`
  carries \`Access-Control-Allow-Origin\` and \`Access-Control-Expose-Headers\`.`

/** The OpenAPI document of the service at this address: a pure function of the contract. */
export function buildOpenApi({ baseUrl }: { baseUrl: string }): Json {
  return {
    openapi: '3.1.0',
    info: {
      title: 'Plant Store',
      version: '1.0.0',
      summary: 'A plant store over HTTP with JSON.',
      description: introduction,
      license: { name: 'MIT', identifier: 'MIT' },
    },
    servers: [{ url: baseUrl, description: 'This service' }],
    tags: [
      { name: 'plants', description: 'The plants in the store. Every call needs a token.' },
      { name: 'service', description: 'The service itself. No token needed.' },
    ],
    paths: { ...buildOperationPaths(), ...buildPagePaths() },
    components: {
      securitySchemes: {
        bearerToken: {
          type: 'http',
          scheme: 'bearer',
          description:
            'A token issued by the operator (`plant-store token create`), with the scope `plants:read`, `plants:write` or both.',
        },
      },
      schemas: Object.fromEntries(
        Object.entries(shapes).map(([name, shape]) => [name, toSchema(shape)]),
      ),
      headers: Object.fromEntries(
        Object.entries(headers).map(([name, { description, example, type }]) => [
          name,
          { description, schema: { type }, example },
        ]),
      ),
    },
  }
}

/** A shape of ours as plain JSON Schema: the bigint that we compute with is an int64 on the wire. */
export function toJsonSchema(shape: TSchema): Json {
  return JSON.parse(JSON.stringify(shape), (key, value) => {
    if (value?.type !== 'bigint' || key === '') return value
    const { type: _, ...rest } = value
    return { type: 'integer', format: 'int64', ...rest }
  })
}

/** A shape as the document has it: what it consists of is named, not repeated. */
function toSchema(shape: TSchema): Json {
  const schema = toJsonSchema(shape)
  return shape === StoredPlants
    ? { ...schema, items: { $ref: '#/components/schemas/StoredPlant' } }
    : schema
}

function buildOperationPaths(): Record<string, Json> {
  const paths: Record<string, Json> = {}
  for (const [name, operation] of Object.entries(operations)) {
    paths[operation.path] = {
      ...paths[operation.path],
      [operation.method.toLowerCase()]: buildOperation(name, operation),
    }
  }
  return paths
}

function buildOperation(name: string, operation: Operation): Json {
  return {
    operationId: name,
    tags: ['plants'],
    summary: operation.summary,
    description: `${operation.description} Needs the scope \`${operation.scope}\`.`,
    security: [{ bearerToken: [operation.scope] }],
    parameters: [
      ...(operation.path.includes('{id}') ? [idParameter] : []),
      ...operation.parameters.map((name) => ({ name, ...parameters[name] })),
    ],
    ...(operation.body && {
      requestBody: { required: true, content: jsonContent(operation.body) },
    }),
    responses: {
      ...Object.fromEntries(
        Object.entries(operation.successes).map(([status, success]) => [
          status,
          {
            ...buildSuccess(success),
            ...(operation.body === NewPlant && { links: linksToPlant }),
          },
        ]),
      ),
      ...buildFailures(failuresOf(operation)),
    },
  }
}

function buildSuccess({ description, headers, optionalHeaders = [], shape }: Success): Json {
  return {
    description,
    headers: headerReferences([...headers, ...optionalHeaders]),
    ...(shape && { content: jsonContent(shape) }),
  }
}

/** From a plant that was created to what can be done with it. */
const linksToPlant = Object.fromEntries(
  (['getPlant', 'replacePlant', 'deletePlant'] as const).map((operationId) => [
    operationId,
    { operationId, parameters: { id: '$request.body#/id' } },
  ]),
)

const idParameter = {
  name: 'id',
  in: 'path',
  required: true,
  description: 'The id of the plant: digits with an optional minus, without leading zeros.',
  schema: { type: 'integer', format: 'int64' },
  example: 1,
}

function buildPagePaths(): Record<string, Json> {
  return Object.fromEntries(
    Object.entries(pages).map(([name, page]) => [page.path, { get: buildPage(name, page) }]),
  )
}

function buildPage(name: string, page: Page): Json {
  const schema = page.mediaType === 'text/html' ? { type: 'string' } : { type: 'object' }
  return {
    operationId: name,
    tags: ['service'],
    summary: page.summary,
    description: page.description,
    security: [],
    responses: {
      200: {
        description: 'As asked.',
        headers: headerReferences(['X-Request-Id']),
        content: page.shape ? jsonContent(page.shape) : { [page.mediaType]: { schema } },
      },
      ...buildFailures(failuresOfPage(page)),
    },
  }
}

/** One response for each status, with an example for each error number of that status. */
function buildFailures(numbers: readonly ErrorNumber[]): Json {
  const byStatus = Map.groupBy(numbers, toStatus)
  return Object.fromEntries(
    [...byStatus].map(([status, sharing]) => [
      status,
      {
        description: sharing.map((number) => `${number}: ${errors[number]}`).join('\n\n'),
        headers: headerReferences(['X-Request-Id', ...failureHeaders(status)]),
        content: {
          'application/json': {
            schema: { $ref: '#/components/schemas/Error' },
            examples: Object.fromEntries(
              sharing.map((number) => [
                number,
                { summary: errors[number], value: { error: number, message: errors[number] } },
              ]),
            ),
          },
        },
      },
    ]),
  )
}

// With 400 it comes when `Authorization` was given twice.
const authenticateStatuses = [400, 401, 403]

function failureHeaders(status: number): HeaderName[] {
  if (authenticateStatuses.includes(status)) return ['WWW-Authenticate']
  return status === 503 ? ['Retry-After'] : []
}

function headerReferences(names: readonly HeaderName[]): Json {
  return Object.fromEntries(names.map((name) => [name, { $ref: `#/components/headers/${name}` }]))
}

function jsonContent(shape: TSchema): Json {
  const name = Object.entries(shapes).find(([, known]) => known === shape)?.[0]
  if (name === undefined) throw new Error('a shape of an operation is missing in the document')
  return { 'application/json': { schema: { $ref: `#/components/schemas/${name}` } } }
}
