import { cachePolicies } from './headers.ts'
import { json, type Page } from './operation.ts'
import { Health, OpenApiDocument, Readiness } from './shapes.ts'

/** Every page. */
export const pages = {
  getHealth: {
    path: '/healthz',
    summary: 'Check that the process is alive',
    description: 'Returns 200 as long as the process answers requests.',
    success: { description: 'The process is alive.', body: json(Health), headers: [] },
    cacheControl: cachePolicies.health,
    failures: [],
  },
  getReadiness: {
    path: '/readyz',
    summary: 'Check that the service is ready',
    description:
      'Returns 200 while the store answers, and 503 when it does not or the service shuts down. ' +
      'While the disk is full, the answer is 200 with the member `writes`.',
    success: { description: 'The service is ready.', body: json(Readiness), headers: [] },
    cacheControl: cachePolicies.health,
    failures: [50000, 50301],
  },
  getOpenApi: {
    path: '/openapi.json',
    summary: 'Get this document',
    description: 'Returns the OpenAPI document of the service.',
    success: { description: 'This document.', body: json(OpenApiDocument), headers: [] },
    failures: [],
  },
  getDocs: {
    path: '/docs',
    summary: 'Read this document',
    description: 'Returns the OpenAPI document as a web page.',
    success: {
      description: 'This document as a web page.',
      body: { mediaType: 'text/html', description: 'A page without scripts.' },
      headers: ['Content-Security-Policy'],
    },
    failures: [],
  },
} as const satisfies Record<string, Page>

export type PageName = keyof typeof pages
