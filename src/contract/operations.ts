import { eventOperations } from './events.ts'
import { fileOperations } from './file-operations.ts'
import { json, type Operation } from './operation.ts'
import { NewPlant, Plant, StoredPlant, StoredPlants } from './shapes.ts'

const metricsExample = `# HELP plant_store_http_connections Open connections.
# TYPE plant_store_http_connections gauge
plant_store_http_connections 1
`
const openMetricsExample = `${metricsExample}# EOF\n`

/** Every operation. Its handler and the method of a generated client have the same name. */
export const operations = {
  createPlant: {
    method: 'POST',
    path: '/plants',
    scope: 'plants:write',
    summary: 'Create a plant',
    description:
      'Creates a new plant in the store. The response is sent once the plant is on disk. If a ' +
      'plant with this id exists, it stays as it is and the response is 409.',
    parameters: ['Idempotency-Key', 'If-Match', 'If-None-Match'],
    body: json(NewPlant),
    successes: {
      200: {
        description: 'The plant is stored.',
        body: json(Plant),
        headers: ['Location', 'ETag'],
        optionalHeaders: ['Idempotency-Replayed'],
      },
    },
    failures: [40900, 42200],
  },
  listPlants: {
    method: 'GET',
    path: '/plants',
    scope: 'plants:read',
    summary: 'List plants',
    description:
      'Returns plants in the order of their ids. While more follow, the `Link` header carries the ' +
      'URL of the next page. A plant that exists throughout the walk is on exactly one page.',
    parameters: ['limit', 'after', 'tag', 'name', 'order'],
    successes: {
      200: {
        description: 'A page of plants.',
        body: json(StoredPlants),
        headers: ['Token-Scopes'],
        optionalHeaders: ['Link'],
      },
    },
    failures: [],
  },
  getPlant: {
    method: 'GET',
    path: '/plants/{id}',
    scope: 'plants:read',
    summary: 'Get a plant',
    description: 'Returns the plant with this id.',
    parameters: ['If-Match', 'If-None-Match'],
    successes: {
      200: { description: 'The plant.', body: json(StoredPlant), headers: ['ETag'] },
      304: {
        description: 'The current state of the plant is one that `If-None-Match` lists.',
        headers: ['ETag'],
      },
    },
    failures: [40401],
  },
  replacePlant: {
    method: 'PUT',
    path: '/plants/{id}',
    scope: 'plants:write',
    summary: 'Replace or create a plant',
    description:
      'Stores the plant under this id and replaces the one that is there, if any. If the body ' +
      'has a member `id`, it must equal the id in the path.',
    parameters: ['If-Match', 'If-None-Match'],
    body: json(Plant),
    successes: {
      200: {
        description: 'The plant was replaced.',
        body: json(StoredPlant),
        headers: ['ETag'],
      },
      201: {
        description: 'The plant was created.',
        body: json(StoredPlant),
        headers: ['Location', 'ETag'],
      },
    },
    failures: [],
  },
  deletePlant: {
    method: 'DELETE',
    path: '/plants/{id}',
    scope: 'plants:write',
    summary: 'Delete a plant',
    description: 'Deletes the plant with this id.',
    parameters: ['If-Match', 'If-None-Match'],
    successes: { 204: { description: 'The plant was deleted.', headers: [] } },
    failures: [40401],
  },
  getMetrics: {
    method: 'GET',
    path: '/metrics',
    scope: 'metrics:read',
    summary: 'Read the metrics',
    description:
      'Returns what the service counts and measures, for Prometheus and for what reads its ' +
      'formats. It is answered even while writes are refused.',
    isServedUnderLoad: true,
    parameters: [],
    successes: {
      200: {
        description: 'The metrics of all processes of the service.',
        body: {
          mediaType: 'text/plain',
          description: 'The text format of Prometheus, version 0.0.4.',
          example: metricsExample,
        },
        alternatives: [
          {
            mediaType: 'application/openmetrics-text',
            description: 'OpenMetrics, version 1.0.0.',
            example: openMetricsExample,
          },
        ],
        headers: ['Vary'],
      },
    },
    failures: [],
  },
  ...fileOperations,
  ...eventOperations,
} as const satisfies Record<string, Operation>

export type Operations = typeof operations
export type OperationName = keyof Operations
