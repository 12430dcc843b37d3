import { failuresOf, failuresOfCheck } from './failures.ts'
import { type Components, type Json, toSchema } from './openapi-components.ts'
import { buildContent, buildFailures, buildSuccess } from './openapi-responses.ts'
import type { HealthCheck, Operation, Success } from './operation.ts'
import { operations } from './operations.ts'
import { healthChecks } from './pages.ts'
import { parameters, toRequestName } from './parameters.ts'
import { int64Bounds } from './schema.ts'

/** Every path with its operations. The introduction describes HEAD, OPTIONS and the web pages. */
export function buildPaths(components: Components): Record<string, Json> {
  const paths: Record<string, Json> = {}
  for (const [name, operation] of Object.entries(operations)) {
    const method = operation.method.toLowerCase()
    const described = describeOperation(components, name, operation)
    paths[operation.path] = { ...paths[operation.path], [method]: described }
  }
  for (const [name, check] of Object.entries(healthChecks)) {
    paths[check.path] = { get: describeCheck(components, name, check) }
  }
  return paths
}

function describeOperation(
  components: Components,
  operationId: string,
  operation: Operation,
): Json {
  const { summary, description, scope, path, body, successes } = operation
  return {
    operationId,
    summary,
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
          { ...buildSuccess(components, 'operation', success), ...buildLinks(operation, success) },
        ]),
      ),
      ...buildFailures(components, 'operation', failuresOf(operation)),
    },
  }
}

function describeCheck(components: Components, operationId: string, check: HealthCheck): Json {
  const { summary, description, successes } = check
  return {
    operationId,
    summary,
    tags: ['service'],
    description,
    security: [],
    responses: {
      ...Object.fromEntries(
        Object.entries(successes).map(([status, success]) => [
          status,
          buildSuccess(components, 'health', success),
        ]),
      ),
      ...buildFailures(components, 'health', failuresOfCheck(check)),
    },
  }
}

/** Links from a created plant to the operations on it. */
function buildLinks({ path }: Operation, { headers }: Success): Json {
  if (!headers.includes('Location')) return {}
  const id = path.endsWith('{id}') ? '$request.path.id' : '$request.body#/id'
  const place = path.endsWith('{id}') ? path : `${path}/{id}`
  const there = Object.entries(operations).filter(([, operation]) => operation.path === place)
  const links = there.map(([operationId]) => [operationId, { operationId, parameters: { id } }])
  return { links: Object.fromEntries(links) }
}

const idParameter = {
  name: 'id',
  in: 'path',
  required: true,
  description: 'The id of the plant: digits with an optional minus sign, without leading zeros.',
  schema: toSchema({ type: 'integer', format: 'int64', ...int64Bounds }),
  example: 1,
}
