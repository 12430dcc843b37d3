import { cachePolicies } from '../contract/headers.ts'
import type { Page } from '../contract/operation.ts'
import { type PageName, pages } from '../contract/pages.ts'
import type { Health, Readiness } from '../contract/shapes.ts'
import { contentSecurityPolicy, openerPolicy, referrerPolicy } from '../contract/web-policy.ts'
import type { Store } from '../store/store.ts'
import type { Asset } from '../web/assets.ts'
import { addField, type Exchange, type Headers, send } from './exchange.ts'
import { shuttingDown } from './failures.ts'
import { takesGzip } from './negotiation.ts'
import type { Lifecycle } from './node/drain.ts'
import { toBaseUrl } from './protocol.ts'
import { type Entry, nothingAt } from './routes.ts'

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

const pageHeaders: Headers = {
  'Cache-Control': cachePolicies.page,
  'Content-Security-Policy': contentSecurityPolicy,
  'Cross-Origin-Opener-Policy': openerPolicy,
  'Referrer-Policy': referrerPolicy,
}
const assetHeaders: Headers = { 'Cache-Control': cachePolicies.asset }

/** The answers with files for browsers. The files are built for the first browser that asks. */
function buildWebFiles() {
  const findAssets = atFirstUse(async () => {
    const { loadAssets } = await import('../web/assets.ts')
    return loadAssets()
  })
  const find = async (name: string) => (await findAssets()).get(name)

  return {
    async sendPage(exchange: Exchange, page: 'page' | 'reference'): Promise<void> {
      sendFile(exchange, (await find(`${page}.html`)) as Asset, pageHeaders)
    },

    async sendAsset(exchange: Exchange, name: string): Promise<void> {
      const asset = await find(`assets/${name}`)
      if (asset === undefined) throw nothingAt(exchange.url)
      sendFile(exchange, asset, assetHeaders)
    },
  }
}

function sendFile(exchange: Exchange, asset: Asset, headers: Headers): void {
  const { 'accept-encoding': accepted, 'if-none-match': known } = exchange.request.headers
  const isGzip = takesGzip(accepted)
  // Two encodings are two representations, which need different tags.
  const ETag = `"${asset.hash}${isGzip ? '-gzip' : ''}"`
  const { 'Cache-Control': caching = '' } = headers
  const cached = { ETag, 'Cache-Control': caching, Vary: 'Accept-Encoding' }
  if (known?.includes(ETag)) {
    send(exchange, 304, cached)
    return
  }
  const own = { ...headers, ...cached, ...(isGzip && { 'Content-Encoding': 'gzip' }) }
  send(exchange, 200, own, [isGzip ? asset.gzipped : asset.bytes], asset.contentType)
}

/**
 * Builds something for its first user, and keeps it. A failure, such as too many open files, is not
 * kept: the next user has it built again.
 */
function atFirstUse<Built>(build: () => Promise<Built>): () => Promise<Built> {
  let built: Promise<Built> | undefined
  return () => {
    built ??= build().catch((error: unknown) => {
      built = undefined
      throw error
    })
    return built
  }
}

/** A full disk counts as full until a write succeeds, or for this long without another write. */
const staleMs = 60_000

/** Remembers whether the last write found the disk full, for the readiness check. */
export interface WriteHealth {
  isDiskFull(): boolean
  noteDiskFull(): void
  noteSuccess(): void
}

export function buildWriteHealth(): WriteHealth {
  let fullAt = Number.NEGATIVE_INFINITY
  return {
    isDiskFull: () => performance.now() - fullAt < staleMs,
    noteDiskFull() {
      fullAt = performance.now()
    },
    noteSuccess() {
      fullAt = Number.NEGATIVE_INFINITY
    },
  }
}
