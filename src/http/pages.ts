import type { Page } from '../contract/operation.ts'
import { type PageName, pages } from '../contract/pages.ts'
import type { Health, Readiness } from '../contract/shapes.ts'
import type { Store } from '../store/store.ts'
import { addField, type Exchange, send } from './exchange.ts'
import { shuttingDown } from './failures.ts'
import { atFirstUse } from './first-use.ts'
import type { Lifecycle } from './node/drain.ts'
import { toBaseUrl } from './protocol.ts'
import type { Entry } from './routes.ts'
import { buildWebFiles } from './web-files.ts'
import type { WriteHealth } from './write-health.ts'

interface PageParts {
  readonly store: Store
  readonly lifecycle: Lifecycle
  readonly writeHealth: WriteHealth
  readonly publicUrl: string | undefined
}

/** The pages that need no token, with the functions that answer them. */
export function buildPages({ store, lifecycle, writeHealth, publicUrl }: PageParts): Entry[] {
  const writeDocument = buildDocument()
  const webFiles = buildWebFiles()
  const healthy: Health = { status: 'ok' }

  const answers: Record<PageName, (exchange: Exchange, name: string) => void | Promise<void>> = {
    getHealth(exchange) {
      sendJson(exchange, JSON.stringify(healthy))
    },

    async getReadiness(exchange) {
      if (lifecycle.isDraining) throw shuttingDown()
      await store.ping()
      const full: Readiness = { status: 'ok', writes: 'disk full' }
      sendJson(exchange, JSON.stringify(writeHealth.isDiskFull() ? full : healthy))
    },

    async getOpenApi(exchange) {
      send(exchange, 200, {}, await writeDocument(publicUrl ?? toBaseUrl(exchange.request)))
    },

    getPage: (exchange) => webFiles.sendPage(exchange, 'page'),
    getDocs: (exchange) => webFiles.sendPage(exchange, 'reference'),
    getAsset: (exchange, name) => webFiles.sendAsset(exchange, name),
  }

  return (Object.keys(pages) as PageName[]).map((name) => {
    const { path, cacheControl }: Page = pages[name]
    return {
      name,
      method: 'GET',
      path,
      isServedUnderLoad: true,
      async handle(exchange, segment) {
        if (cacheControl !== undefined) addField(exchange, 'Cache-Control', cacheControl)
        await answers[name](exchange, segment)
      },
    }
  })
}

/** Stands for the address, so that all answers share the rest of the document. */
const placeholder = 'http://placeholder.invalid'

/** Writes the OpenAPI document. The first client that asks for it has it built. */
function buildDocument(): (baseUrl: string) => Promise<Buffer[]> {
  const findParts = atFirstUse(async () => {
    const { buildOpenApi } = await import('../contract/openapi.ts')
    const parts = JSON.stringify(buildOpenApi({ baseUrl: placeholder })).split(placeholder)
    return parts.map((part) => Buffer.from(part))
  })
  return async (baseUrl) => {
    const [start, ...rest] = (await findParts()) as [Buffer, ...Buffer[]]
    const address = Buffer.from(JSON.stringify(baseUrl).slice(1, -1))
    return [start, ...rest.flatMap((part) => [address, part])]
  }
}

function sendJson(exchange: Exchange, text: string): void {
  send(exchange, 200, {}, text)
}
