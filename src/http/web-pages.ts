import type { Asset } from '../../web/assets.ts'
import { Failure } from '../contract/errors.ts'
import { cachePolicies } from '../contract/headers.ts'
import type { PageName } from '../contract/operations.ts'
import type { Health } from '../contract/shapes.ts'
import { type Exchange, type HeaderValues, send } from './answer.ts'
import type { App } from './app.ts'
import { takesGzip } from './read-request.ts'

/** Answers a request for a page. The name is the last segment of a path that ends in one. */
export type Page = (exchange: Exchange, name: string) => void | Promise<void>

/** The pages that need no token. */
export function buildPages(app: App): Record<PageName, Page> {
  const healthy: Health = { status: 'ok' }
  let assets: ReadonlyMap<string, Asset> | undefined
  let document: Asset | undefined

  async function sendAsset(exchange: Exchange, name: string, headers: HeaderValues): Promise<void> {
    const { loadAssets } = await import('../../web/assets.ts')
    // They are built at the first request. If that fails, the next request tries again.
    assets ??= loadAssets()
    const asset = assets.get(name)
    if (asset === undefined) throw nothingThere()
    sendFile(exchange, asset, headers)
  }

  return {
    getHealth(exchange) {
      send(exchange, 200, {}, JSON.stringify(healthy))
    },

    async getReadiness(exchange) {
      if (app.isDraining) throw shuttingDown()
      await app.store.ping()
      send(exchange, 200, {}, JSON.stringify(healthy))
    },

    async getOpenApi(exchange) {
      const { toAsset } = await import('../../web/assets.ts')
      const { buildOpenApi } = await import('../contract/openapi.ts')
      const { publicUrl: baseUrl = '/' } = app.settings
      document ??= toAsset('openapi.json', JSON.stringify(buildOpenApi({ baseUrl })))
      sendFile(exchange, document, documentHeaders)
    },

    getPage: (exchange) => sendAsset(exchange, 'page.html', pageHeaders),
    getDocs: (exchange) => sendAsset(exchange, 'reference.html', pageHeaders),
    getAsset: (exchange, name) => sendAsset(exchange, `assets/${name}`, assetHeaders),
  }
}

export function shuttingDown(advice = ''): Failure {
  return new Failure(50300, `The service is shutting down.${advice}`, { reason: 'shutdown' })
}

/** Nothing exists at this path. */
export function nothingThere(hint = 'See /docs.'): Failure {
  return new Failure(40400, `There is nothing at this path. ${hint}`)
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

const pageHeaders: HeaderValues = {
  'Cache-Control': cachePolicies.page,
  'Content-Security-Policy': contentSecurityPolicy,
  // Keeps a page that opened this one from reaching it.
  'Cross-Origin-Opener-Policy': 'same-origin',
  // Hides the address of a page from other sites.
  'Referrer-Policy': 'no-referrer',
}
const documentHeaders: HeaderValues = { 'Cache-Control': cachePolicies.page }
const assetHeaders: HeaderValues = { 'Cache-Control': cachePolicies.asset }

function sendFile(exchange: Exchange, asset: Asset, headers: HeaderValues): void {
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
