import { cachePolicies } from '../contract/headers.ts'
import { contentSecurityPolicy, referrerPolicy } from '../contract/web-policy.ts'
import type { Asset } from '../web/assets.ts'
import { type Exchange, type Headers, send } from './exchange.ts'
import { atFirstUse } from './first-use.ts'
import { takesGzip } from './negotiation.ts'
import { nothingAt } from './unrouted.ts'

const pageHeaders: Headers = {
  'Cache-Control': cachePolicies.page,
  'Content-Security-Policy': contentSecurityPolicy,
  'Referrer-Policy': referrerPolicy,
}
const assetHeaders: Headers = { 'Cache-Control': cachePolicies.asset }

/** The answers with files for browsers. The files are built for the first browser that asks. */
export function buildWebFiles() {
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
