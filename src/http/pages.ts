import type { Asset } from '../../web/assets.ts'
import { cachePolicies } from '../contract/headers.ts'
import { healthChecks, type PageName, pagePaths } from '../contract/pages.ts'
import type { Health } from '../contract/shapes.ts'
import type { Store } from '../store/store.ts'
import { addField, type Exchange, type Headers, send } from './exchange.ts'
import { shuttingDown } from './failures.ts'
import { takesGzip } from './negotiation.ts'
import { type Entry, nothingAt } from './routes.ts'

/** The state of the service that the readiness check reports. */
export interface ServiceState {
  /** Whether it is shutting down. Answers then close their connections. */
  isDraining: boolean
}

interface PageParts {
  readonly store: Store
  readonly state: ServiceState
  readonly publicUrl: string | undefined
}

/** The pages that need no token, with the functions that answer them. */
export function buildPages({ store, state, publicUrl = '/' }: PageParts): Entry[] {
  const healthy: Health = { status: 'ok' }
  let assets: ReadonlyMap<string, Asset> | undefined
  let document: Asset | undefined

  async function sendAsset(exchange: Exchange, name: string, headers: Headers): Promise<void> {
    const { loadAssets } = await import('../../web/assets.ts')
    // They are built at the first request. If that fails, the next request tries again.
    assets ??= loadAssets()
    const asset = assets.get(name)
    if (asset === undefined) throw nothingAt(exchange.url)
    sendFile(exchange, asset, headers)
  }

  const answers: Record<PageName, (exchange: Exchange, name: string) => void | Promise<void>> = {
    getHealth(exchange) {
      send(exchange, 200, {}, JSON.stringify(healthy))
    },

    async getReadiness(exchange) {
      if (state.isDraining) throw shuttingDown()
      await store.ping()
      send(exchange, 200, {}, JSON.stringify(healthy))
    },

    async getOpenApi(exchange) {
      const { toAsset } = await import('../../web/assets.ts')
      const { buildOpenApi } = await import('../contract/openapi.ts')
      document ??= toAsset('openapi.json', JSON.stringify(buildOpenApi({ baseUrl: publicUrl })))
      sendFile(exchange, document, documentHeaders)
    },

    getPage: (exchange) => sendAsset(exchange, 'page.html', pageHeaders),
    getDocs: (exchange) => sendAsset(exchange, 'reference.html', pageHeaders),
    getAsset: (exchange, name) => sendAsset(exchange, `assets/${name}`, assetHeaders),
  }

  return (Object.keys(answers) as PageName[]).map((name) => ({
    name,
    method: 'GET',
    path: pagePaths[name],
    isServedUnderLoad: true,
    async handle(exchange, segment) {
      if (name in healthChecks) addField(exchange, 'Cache-Control', cachePolicies.health)
      await answers[name](exchange, segment)
    },
  }))
}

/**
 * The web pages may load and call this service, and nothing else. Text can never become markup or
 * script (Trusted Types), and no other page can frame them.
 */
const contentSecurityPolicy = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self'",
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
  "require-trusted-types-for 'script'",
  "trusted-types 'none'",
].join('; ')

/** Keeps a page that opened this one from reaching it. */
const openerPolicy = 'same-origin'

/** Hides the address of a page from other sites. */
const referrerPolicy = 'no-referrer'

const pageHeaders: Headers = {
  'Cache-Control': cachePolicies.page,
  'Content-Security-Policy': contentSecurityPolicy,
  'Cross-Origin-Opener-Policy': openerPolicy,
  'Referrer-Policy': referrerPolicy,
}
const documentHeaders: Headers = { 'Cache-Control': cachePolicies.page }
const assetHeaders: Headers = { 'Cache-Control': cachePolicies.asset }

function sendFile(exchange: Exchange, asset: Asset, headers: Headers): void {
  const { 'accept-encoding': accepted, 'if-none-match': known } = exchange.request.headers
  const isGzip = takesGzip(accepted)
  // Two encodings are two representations, which need different tags.
  const ETag = `"${asset.hash}${isGzip ? '-gzip' : ''}"`
  const { 'Cache-Control': caching = '' } = headers
  const cached = { ETag, 'Cache-Control': caching, Vary: 'Accept-Encoding' }
  if (known === '*' || known?.includes(ETag)) {
    send(exchange, 304, cached)
    return
  }
  const own = { ...headers, ...cached, ...(isGzip && { 'Content-Encoding': 'gzip' }) }
  send(exchange, 200, own, isGzip ? asset.gzipped : asset.bytes, asset.contentType)
}
