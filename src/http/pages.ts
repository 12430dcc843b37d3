import type { IncomingMessage } from 'node:http'
import { Failure } from '../contract/errors.ts'
import { buildOpenApi } from '../contract/openapi.ts'
import type { Page } from '../contract/operation.ts'
import { type PageName, pages } from '../contract/pages.ts'
import type { Health, Readiness } from '../contract/shapes.ts'
import type { Store } from '../store/store.ts'
import type { Lifecycle } from './connections/drain.ts'
import { buildDocsPage, docsPolicy } from './docs.ts'
import { addField, type Headers, send } from './exchange.ts'
import { toBaseUrl } from './protocol.ts'
import type { Entry } from './routes.ts'
import type { WriteHealth } from './write-health.ts'

function shuttingDown(): Failure {
  return new Failure(50300, 'The service is shutting down.', { reason: 'shutdown' })
}

interface PageParts {
  readonly store: Store
  readonly lifecycle: Lifecycle
  readonly writeHealth: WriteHealth
  readonly publicUrl: string | undefined
}

interface PageAnswer {
  readonly text: string
  readonly contentType?: string
  readonly headers?: Headers
}

/** Stands for the address, so that the document is serialised once and not for every request. */
const placeholder = 'http://placeholder.invalid'

/** The pages that need no token, with the functions that answer them. */
export function buildPages({ store, lifecycle, writeHealth, publicUrl }: PageParts): Entry[] {
  const document = buildOpenApi({ baseUrl: placeholder })
  const [documentStart = '', documentEnd = ''] = JSON.stringify(document).split(placeholder)
  const docsPage = buildDocsPage(document)
  const healthy: Health = { status: 'ok' }

  const answers: Record<PageName, (request: IncomingMessage) => Promise<PageAnswer>> = {
    async getHealth() {
      return { text: JSON.stringify(healthy) }
    },

    async getReadiness() {
      if (lifecycle.isDraining) throw shuttingDown()
      await store.ping()
      const full: Readiness = { status: 'ok', writes: 'disk full' }
      return { text: JSON.stringify(writeHealth.isDiskFull() ? full : healthy) }
    },

    async getOpenApi(request) {
      const baseUrl = publicUrl ?? toBaseUrl(request)
      const address = JSON.stringify(baseUrl).slice(1, -1)
      return { text: documentStart + address + documentEnd }
    },

    async getDocs() {
      return {
        text: docsPage,
        contentType: 'text/html; charset=utf-8',
        headers: { 'Content-Security-Policy': docsPolicy },
      }
    },
  }

  return (Object.keys(pages) as PageName[]).map((name) => {
    const { path, cacheControl }: Page = pages[name]
    return {
      name,
      method: 'GET',
      path,
      isServedUnderLoad: true,
      async handle(exchange) {
        if (cacheControl !== undefined) addField(exchange, 'Cache-Control', cacheControl)
        const { text, contentType, headers = {} } = await answers[name](exchange.request)
        send(exchange, 200, headers, text, contentType)
      },
    }
  })
}
