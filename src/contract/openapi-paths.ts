import type { Subject } from './carried-headers.ts'
import { failuresOf, failuresOfPage, protocolFailures } from './failures.ts'
import { type Components, type Json, toSchema } from './openapi-components.ts'
import { buildContent, buildFailures, buildSuccess } from './openapi-responses.ts'
import type { Operation, Page, Success } from './operation.ts'
import { operations } from './operations.ts'
import { pages } from './pages.ts'
import { parameters, toRequestName } from './parameters.ts'
import { int64Bounds } from './schema.ts'

/** Every path with its operations or its page, HEAD wherever GET is, and OPTIONS. */
export function buildPaths(components: Components): Record<string, Json> {
  const paths: Record<string, Json> = {}
  const add = (path: string, method: string, described: Json) => {
    paths[path] = { ...paths[path], [method.toLowerCase()]: described }
  }
  for (const [name, operation] of Object.entries(operations)) {
    for (const method of withHead(operation.method)) {
      add(operation.path, method, describeOperation(components, name, method, operation))
    }
  }
  for (const [name, page] of Object.entries(pages)) {
    for (const method of withHead('GET')) {
      add(page.path, method, describePage(components, name, method, page))
    }
  }
  for (const path of Object.keys(paths)) add(path, 'OPTIONS', describeOptions(components, path))
  return paths
}

function withHead(method: string): string[] {
  return method === 'GET' ? ['GET', 'HEAD'] : [method]
}

function describeOperation(
  components: Components,
  name: string,
  method: string,
  operation: Operation,
): Json {
  const { summary, description, scope, path, body, successes } = operation
  const kind = { subject: 'operation', method } as const
  return {
    ...toNames(name, method, summary),
    tags: [scope === 'metrics:read' ? 'service' : 'plants'],
    description: `${description} Requires the scope \`${scope}\`.`,
    security: [{ bearerToken: [scope] }],
    parameters: [
      ...(path.includes('{id}') ? [idParameter] : []),
      ...operation.parameters.map((parameter) => ({
        ...(toSchema(parameters[parameter]) as Json),
        name: toRequestName(parameter),
      })),
    ],
    ...(body && {
      requestBody: {
        required: true,
        content: { [body.mediaType]: buildContent(components, body) },
      },
    }),
    responses: {
      ...Object.fromEntries(
        Object.entries(successes).map(([status, success]) => [
          status,
          { ...buildSuccess(components, kind, success), ...buildLinks(operation, success) },
        ]),
      ),
      ...buildFailures(components, kind, failuresOf(operation)),
    },
  }
}

function describePage(components: Components, name: string, method: string, page: Page): Json {
  const { summary, description, path, successes } = page
  const subject: Subject = page.cacheControl === undefined ? 'page' : 'health'
  return {
    ...toNames(name, method, summary),
    tags: ['service'],
    description,
    security: [],
    ...(path.includes('{name}') && { parameters: [nameParameter] }),
    responses: {
      ...Object.fromEntries(
        Object.entries(successes).map(([status, success]) => [
          status,
          buildSuccess(components, { subject, method }, success),
        ]),
      ),
      ...buildFailures(components, { subject, method }, failuresOfPage(page)),
    },
  }
}

function describeOptions(components: Components, path: string): Json {
  const kind = { subject: 'options', method: 'OPTIONS' } as const
  return {
    operationId: `${(path.match(/[a-z]+/g) ?? ['page']).join('_')}_options`,
    tags: ['service'],
    summary: 'Ask what the path allows',
    description:
      'Returns the methods that the path supports and, in response to a CORS preflight, the ' +
      'headers that a page of another origin may send.',
    security: [],
    ...(path.includes('{id}') && { parameters: [anyId] }),
    ...(path.includes('{name}') && { parameters: [nameParameter] }),
    responses: {
      204: buildSuccess(components, kind, { description: 'See the headers.', headers: [] }),
      ...buildFailures(components, kind, protocolFailures),
    },
  }
}

function toNames(name: string, method: string, summary: string): Json {
  if (method !== 'HEAD') return { operationId: name, summary }
  return { operationId: `${name}Head`, summary: `${summary}: the headers alone` }
}

/** From a plant that was created, to the operations on it. */
function buildLinks({ path }: Operation, { headers }: Success): Json {
  if (!headers.includes('Location')) return {}
  const id = path.endsWith('{id}') ? '$request.path.id' : '$request.body#/id'
  const place = path.endsWith('{id}') ? path : `${path}/{id}`
  const there = Object.entries(operations).filter(([, operation]) => operation.path === place)
  const links = there.map(([operationId]) => [operationId, { operationId, parameters: { id } }])
  return { links: Object.fromEntries(links) }
}

/** OPTIONS does not look at the id. */
const anyId = {
  ...inPath('id'),
  description: 'Any text: the methods are the same for every id.',
  schema: { type: 'string' },
  example: '1',
}

const nameParameter = {
  ...inPath('name'),
  description: 'The name of the file, as a web page refers to it.',
  schema: { type: 'string' },
}

const idParameter = {
  ...inPath('id'),
  description: 'The id of the plant: digits with an optional minus sign, without leading zeros.',
  schema: toSchema({ type: 'integer', format: 'int64', ...int64Bounds }),
  example: 1,
}

function inPath(name: string) {
  return { name, in: 'path', required: true }
}
