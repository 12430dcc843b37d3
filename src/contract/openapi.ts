import { type Format, formats } from './formats.ts'
import { headers } from './headers.ts'
import {
  buildFailures,
  headerReferences,
  type Json,
  jsonContent,
  rateLimitHeaders,
  shapes,
  toSchema,
} from './openapi-parts.ts'
import {
  failuresOf,
  failuresOfOptions,
  failuresOfPage,
  type Operation,
  operations,
  type Page,
  pages,
  type Success,
} from './operations.ts'
import { parameters } from './parameters.ts'
import { NewPlant } from './shapes.ts'

const introduction = `A plant store over HTTP with JSON bodies.

- A 200 to a create means that the plant is on disk.
- An \`id\` is any int64 and is exact to the last digit, in requests and in answers.
- Every answer that is not a success has an \`Error\` body. Its \`error\` is the HTTP status times 100 plus a detail.
- A state of a plant has an \`ETag\`; \`If-Match\` and \`If-None-Match\` make a request depend on it.
- Another method on a known path is 405 (40500) with \`Allow\`, an unknown path is 404 (40400).
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
    paths: withHeadAndOptions({ ...buildOperationPaths(), ...buildPagePaths() }),
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
        Object.entries(headers).map(([name, { description, example, type, ...rest }]) => [
          name,
          { description, required: !('isOptional' in rest), schema: { type }, example },
        ]),
      ),
    },
  }
}

/** Adds what every path answers beside its operations: HEAD wherever GET is, and OPTIONS. */
function withHeadAndOptions(paths: Record<string, Json>): Record<string, Json> {
  return Object.fromEntries(
    Object.entries(paths).map(([path, methods]) => {
      const { get } = methods as { get?: DocumentedGet }
      return [path, { ...methods, ...(get && { head: toHead(get) }), options: buildOptions(path) }]
    }),
  )
}

interface DocumentedGet extends Json {
  readonly operationId: string
  readonly summary: string
  readonly responses: Record<string, Json>
}

function toHead(get: DocumentedGet): Json {
  return {
    ...get,
    operationId: `${get.operationId}Head`,
    summary: `${get.summary}: the headers alone`,
    responses: Object.fromEntries(
      Object.entries(get.responses).map(([status, { content: _, ...response }]) => [
        status,
        response,
      ]),
    ),
  }
}

function buildOptions(path: string): Json {
  const words = path.match(/[a-z]+/g) ?? []
  return {
    operationId: `${words.join('_')}_options`,
    tags: ['service'],
    summary: 'Ask what the path allows',
    description:
      'Answers the methods that the path knows; to a browser that asks beforehand, also what it may send.',
    security: [],
    ...(path.includes('{id}') && { parameters: [idParameter] }),
    responses: {
      204: {
        description: 'As the header says.',
        headers: headerReferences(['Allow', 'X-Request-Id']),
      },
      ...buildFailures(failuresOfOptions()),
    },
  }
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
      ...buildFailures(failuresOf(operation), rateLimitHeaders),
    },
  }
}

function buildSuccess(success: Success): Json {
  const { description, headers, optionalHeaders = [], shape, formats: forms = [] } = success
  return {
    description,
    headers: headerReferences([...headers, ...optionalHeaders, ...rateLimitHeaders]),
    ...(shape && {
      content: { ...jsonContent(shape), ...Object.assign({}, ...forms.map(formContent)) },
    }),
  }
}

function formContent(format: Format): Json {
  const { mediaType, description, example } = formats[format]
  return { [mediaType]: { schema: { type: 'string', description }, example } }
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
