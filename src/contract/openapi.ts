import { buildComponents, type Components, type Json } from './openapi-components.ts'
import { buildPaths } from './openapi-paths.ts'
import { webhookAnswers, webhookHeaders, webhooks } from './webhooks.ts'

const introduction = `A plant store over HTTP with JSON bodies.

- A 200 to a create means that the plant is on disk.
- An \`id\` is any int64 and is exact to the last digit, in requests and in responses.
- Every response that is neither 2xx nor 3xx has an \`Error\` body. Its \`error\` is the HTTP status
  times 100 plus a detail.
- Every state of a plant has an \`ETag\`. \`If-Match\` and \`If-None-Match\` make a request depend
  on it.
- An unknown path is 404 (40400). An unsupported method on a known path is 405 (40500) with
  \`Allow\`.
- Limits: a body of 1 MiB, JSON 32 levels deep, headers of 16 KiB, a URL of 8 KiB; the headers
  complete within 10 s, the whole request within 30 s.
- HEAD is answered wherever GET is, with the same headers and no body. OPTIONS is answered on every
  path: 204 with \`Allow\` and, to a preflight, what CORS allows.
- \`/openapi.json\` is this document, \`/docs\` shows it, and \`/\` is a web page for people. They and
  their files need no token, and have \`ETag\`, \`Cache-Control\` and gzip.
- Pages of any origin may call (CORS), unless the operator names the origins that may.
- Every response header is listed, except those of HTTP itself: \`Date\`, \`Connection\`,
  \`Keep-Alive\`, \`Content-Type\`, \`Content-Length\` and \`Transfer-Encoding\`.`

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
    paths: buildPaths(components),
    webhooks: buildWebhooks(components),
    components: {
      securitySchemes: {
        bearerToken: {
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
function buildWebhooks({ referToShape }: Components): Record<string, Json> {
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
          parameters: Object.entries(webhookHeaders).map(([name, header]) => ({
            name,
            in: 'header',
            required: true,
            ...header,
            ...(name === 'Plant-Event' && { schema: { ...header.schema, const: type } }),
          })),
          requestBody: {
            required: true,
            content: { 'application/json': { schema: referToShape(body) } },
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
