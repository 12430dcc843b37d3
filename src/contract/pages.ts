import { type HealthCheck, json } from './operation.ts'
import { Health } from './shapes.ts'

/** The health checks. */
export const healthChecks = {
  getHealth: {
    path: '/healthz',
    summary: 'Check that the process is alive',
    description: 'Returns 200 as long as the process answers requests.',
    successes: {
      200: { description: 'The process is alive.', body: json(Health), headers: [] },
    },
    failures: [],
  },
  getReadiness: {
    path: '/readyz',
    summary: 'Check that the service is ready',
    description:
      'Returns 200 while the store answers, and 503 when it does not or the service shuts down. ' +
      'While the disk is full, the answer is 200 with the member `writes`.',
    successes: {
      200: { description: 'The service is ready.', body: json(Health), headers: [] },
    },
    failures: [50000, 50301],
  },
} as const satisfies Record<string, HealthCheck>

/**
 * The paths of the document, the web pages and their files. The document only mentions them, since
 * programs do not call them. `{name}` stands for the name of a file.
 */
const webPaths = {
  getOpenApi: '/openapi.json',
  getPage: '/',
  getDocs: '/docs',
  getAsset: '/assets/{name}',
} as const

/** Every path that needs no token. */
export const pagePaths = {
  getHealth: healthChecks.getHealth.path,
  getReadiness: healthChecks.getReadiness.path,
  ...webPaths,
} as const

export type PageName = keyof typeof pagePaths
