import { cachePolicies, type HeaderName } from './headers.ts'
import { type JsonBody, json, type Page, type TextBody } from './operation.ts'
import { Health, OpenApiDocument, Readiness } from './shapes.ts'

const webPage = webFile('The page.', { mediaType: 'text/html', description: 'A web page.' }, [
  'Content-Security-Policy',
  'Cross-Origin-Opener-Policy',
  'Referrer-Policy',
])

/** Every page. */
export const pages = {
  getHealth: {
    path: '/healthz',
    summary: 'Check that the process is alive',
    description: 'Returns 200 as long as the process answers requests.',
    successes: {
      200: { description: 'The process is alive.', body: json(Health), headers: [] },
    },
    cacheControl: cachePolicies.health,
    failures: [],
  },
  getReadiness: {
    path: '/readyz',
    summary: 'Check that the service is ready',
    description:
      'Returns 200 while the store answers, and 503 when it does not or the service shuts down. ' +
      'While the disk is full, the answer is 200 with the member `writes`.',
    successes: {
      200: { description: 'The service is ready.', body: json(Readiness), headers: [] },
    },
    cacheControl: cachePolicies.health,
    failures: [50000, 50301],
  },
  getOpenApi: {
    path: '/openapi.json',
    summary: 'Get this document',
    description: 'Returns the OpenAPI document of the service.',
    successes: webFile('This document.', json(OpenApiDocument), []),
    failures: [],
  },
  getPage: {
    path: '/',
    summary: 'Open the page for people',
    description:
      'Returns a web page that shows and changes plants. It asks for a token and calls the ' +
      'operations of this document with it.',
    successes: webPage,
    failures: [],
  },
  getDocs: {
    path: '/docs',
    summary: 'Read this document',
    description: 'Returns a web page that shows this document and can try each operation.',
    successes: webPage,
    failures: [],
  },
  getAsset: {
    path: '/assets/{name}',
    summary: 'Get a file of the web pages',
    description:
      'Returns a script, a style or an image of the web pages. Its name contains a hash of its ' +
      'content, so it never changes.',
    successes: webFile('The file.', { mediaType: '*/*', description: 'A file.' }, []),
    failures: [40400],
  },
} as const satisfies Record<string, Page>

/** The answers of a file for browsers, which is compressed and cached. */
function webFile(description: string, body: JsonBody | TextBody, own: readonly HeaderName[]) {
  const cached = ['ETag', 'Cache-Control', 'Vary'] as const
  return {
    200: {
      description,
      body,
      headers: [...cached, ...own],
      optionalHeaders: ['Content-Encoding'],
    },
    304: { description: 'The file is the one that `If-None-Match` names.', headers: cached },
  } satisfies Page['successes']
}

export type PageName = keyof typeof pages
