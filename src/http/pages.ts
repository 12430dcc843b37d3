import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { Failure } from '../contract/errors.ts'
import { buildOpenApi } from '../contract/openapi.ts'
import { type PageName, pages } from '../contract/operations.ts'
import type { Health } from '../contract/shapes.ts'
import type { Store } from '../store/store.ts'
import { buildDocsPage, docsPolicy } from './docs.ts'
import type { Lifecycle } from './lifecycle.ts'
import { toBaseUrl } from './protocol.ts'

interface PageParts {
  readonly store: Store
  readonly lifecycle: Lifecycle
  readonly publicUrl: string | undefined
}

type PageHandler = (request: FastifyRequest, reply: FastifyReply) => Promise<FastifyReply>

/** Stands where the address goes, so that the document is written once and not for every request. */
const placeholder = 'http://placeholder.invalid'

/** Registers the pages that anybody may read without a token. */
export function addPages(app: FastifyInstance, { store, lifecycle, publicUrl }: PageParts): void {
  const document = buildOpenApi({ baseUrl: placeholder })
  const [documentStart = '', documentEnd = ''] = JSON.stringify(document).split(placeholder)
  const docsPage = buildDocsPage(document)
  const healthy: Health = { status: 'ok' }

  const handlers: Record<PageName, PageHandler> = {
    async getHealth(_, reply) {
      return reply.send(healthy)
    },

    async getReadiness(_, reply) {
      if (lifecycle.isDraining) throw new Failure(50300, 'The service is shutting down.')
      await store.ping()
      return reply.send(healthy)
    },

    async getOpenApi(request, reply) {
      const baseUrl = publicUrl ?? toBaseUrl(request.raw)
      const address = JSON.stringify(baseUrl).slice(1, -1)
      return reply.type('application/json').send(documentStart + address + documentEnd)
    },

    async getDocs(_, reply) {
      return reply
        .type('text/html; charset=utf-8')
        .headers({ 'Content-Security-Policy': docsPolicy, 'X-Content-Type-Options': 'nosniff' })
        .send(docsPage)
    },
  }

  for (const name of Object.keys(pages) as PageName[]) {
    app.route({
      method: 'GET',
      url: pages[name].path,
      config: { isPage: true },
      handler: handlers[name],
    })
  }
}
