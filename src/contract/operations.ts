import { eventStreamType, type Format, formats } from './formats.ts'
import { type HealthCheck, json, type Operation } from './operation.ts'
import {
  Events,
  Health,
  ImportReport,
  NewPlant,
  Plant,
  StoredPlant,
  StoredPlants,
} from './shapes.ts'

const names = { ndjson: 'NDJSON', csv: 'CSV' } as const

const exportParameters = ['exportLimit', 'after', 'tag'] as const

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
        description: 'Plant response: the plant is stored.',
        body: json(Plant),
        headers: { 'Idempotency-Replayed': 'optional', Location: 'required', ETag: 'required' },
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
        headers: { Link: 'optional', 'Token-Scopes': 'required' },
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
      200: {
        description: 'The plant.',
        body: json(StoredPlant),
        headers: { ETag: 'required' },
      },
      304: {
        description: 'The current state of the plant is one that `If-None-Match` lists.',
        headers: { ETag: 'required' },
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
        headers: { ETag: 'required' },
      },
      201: {
        description: 'The plant was created.',
        body: json(StoredPlant),
        headers: { Location: 'required', ETag: 'required' },
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
    successes: { 204: { description: 'The plant was deleted.', headers: {} } },
    failures: [40401],
  },
  getMetrics: {
    method: 'GET',
    path: '/metrics',
    scope: 'metrics:read',
    summary: 'Read the metrics',
    description:
      'Returns what the service counts and measures, in formats of Prometheus. It is answered even ' +
      'while writes are refused.',
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
        headers: { Vary: 'required' },
      },
    },
    failures: [],
  },
  exportPlantsAsNdjson: { ...describeExport('ndjson'), parameters: exportParameters },
  exportPlantsAsCsv: {
    ...describeExport('csv'),
    parameters: [...exportParameters, 'delimiter', 'spreadsheet'],
  },
  importPlantsAsNdjson: {
    ...describeImport('ndjson'),
    parameters: ['on-conflict', 'dry-run'],
    failures: [],
  },
  importPlantsAsCsv: {
    ...describeImport('csv'),
    parameters: ['on-conflict', 'dry-run', 'delimiter'],
    // Without a usable header row, no line can be read.
    failures: [40003],
  },
  listEvents: {
    method: 'GET',
    path: '/events',
    scope: 'plants:read',
    summary: 'Follow changes',
    description:
      'Returns every create, replace and delete that succeeded, oldest first, each once. For a copy ' +
      'without a gap, request `after=latest`, list all plants, then follow the `Link` of the first ' +
      'response. With `Accept: text/event-stream` the response never ends.',
    parameters: ['limit', 'position', 'Last-Event-ID'],
    successes: {
      200: {
        description:
          'A page of changes, which may be empty. `Link` is always there: it is where to ask next. ' +
          'Or a stream of server-sent events, whose schema is that of the changes in it: first an ' +
          '`id` with the position where the stream begins; then for each change `id`, its ' +
          'position, `event`, its type, and `data`, the `Event` in one line. A comment comes at ' +
          'least every 15 s. A stream that begins while the service shuts down ends at once.',
        body: json(Events),
        alternatives: [
          {
            mediaType: eventStreamType,
            description: 'Server-sent events.',
            carries: Events,
          },
        ],
        headers: { 'X-Accel-Buffering': 'optional', Link: 'required', Vary: 'required' },
      },
    },
    failures: [40400, 41000],
  },
} as const satisfies Record<string, Operation>

export type Operations = typeof operations
export type OperationName = keyof Operations

/** The health checks. They need no token. */
export const healthChecks = {
  getHealth: {
    method: 'GET',
    path: '/healthz',
    summary: 'Check that the process is alive',
    description: 'Returns 200 as long as the process answers requests.',
    parameters: [],
    successes: {
      200: { description: 'The process is alive.', body: json(Health), headers: {} },
    },
    failures: [],
  },
  getReadiness: {
    method: 'GET',
    path: '/readyz',
    summary: 'Check that the service is ready',
    description:
      'Returns 200 while the store answers, and 503 when it does not or the service shuts down.',
    parameters: [],
    successes: {
      200: { description: 'The service is ready.', body: json(Health), headers: {} },
    },
    failures: [50000, 50301],
  },
} as const satisfies Record<string, HealthCheck>

/**
 * The paths of the document, the web pages and their files. The document only mentions them, since
 * programs do not call them. `{name}` stands for the name of a file.
 */
export const webPaths = {
  getOpenApi: '/openapi.json',
  getPage: '/',
  getDocs: '/docs',
  getAsset: '/assets/{name}',
} as const

/** Every path that needs no token. The code calls all of them pages, health checks included. */
export const pagePaths = {
  getHealth: healthChecks.getHealth.path,
  getReadiness: healthChecks.getReadiness.path,
  ...webPaths,
} as const

export type PageName = keyof typeof pagePaths

function describeExport<const Name extends Format>(format: Name) {
  return {
    method: 'GET',
    path: `/plants.${format}`,
    scope: 'plants:read',
    summary: `Export plants as ${names[format]}`,
    description:
      'Returns every plant, as of one moment, in ascending order of id, as the command ' +
      '`plant-store export` writes them. A response without its end was broken off.',
    successes: {
      200: {
        description: 'The plants.',
        body: { ...formats[format], schemaFormat: 'binary' },
        headers: {
          'Content-Encoding': 'optional',
          'Content-Disposition': 'required',
          Vary: 'required',
        },
      },
    },
    failures: [],
  } as const
}

function describeImport<const Name extends Format>(format: Name) {
  return {
    method: 'POST',
    path: `/plants.${format}`,
    scope: 'plants:write',
    summary: `Import plants as ${names[format]}`,
    description:
      'Stores the plants of a file of any length, gzipped or not (`Content-Encoding: gzip`). This ' +
      'is not one transaction: what was read before a failure stays, and the same file sent again ' +
      'finds it there. The report lists refused lines; 100,000 of them end the import. At most 4 ' +
      'imports run at a time, 2 of a token (50300), for 10 minutes each.',
    body: { ...formats[format], format },
    successes: {
      200: {
        description: 'The file was read, up to `endedAtLine` if that is given.',
        body: json(ImportReport),
        headers: {},
      },
    },
  } as const
}
