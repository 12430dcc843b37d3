import type { IncomingMessage } from 'node:http'
import { isIP } from 'node:net'
import { hostname } from 'node:os'
import type { Failure } from '../contract/errors.ts'
import { malformed } from './failures.ts'

interface HostParts {
  /** The address that the service listens on, which may be a name. */
  readonly host: string
  readonly publicUrl: string | undefined
}

/**
 * Tells whether a host is ours: nobody else can claim an address, `localhost` or a name of this
 * machine.
 */
export function buildOwnHosts(parts: HostParts): (host: string) => boolean {
  const ownNames = new Set(['localhost', parts.host, hostname(), `${hostname()}.local`])
  if (parts.publicUrl !== undefined) ownNames.add(new URL(parts.publicUrl).hostname)
  return (host) => {
    const name = toName(host)
    return isIP(name) !== 0 || ownNames.has(name) || name.endsWith('.localhost')
  }
}

/**
 * Finds requests of browsers that were led here by a foreign name: a page of that name would count
 * as ours (DNS rebinding). Programs may use any name, and so may pages of other origins, which CORS
 * judges.
 */
export function buildHostCheck(
  isOwn: (host: string) => boolean,
): (request: IncomingMessage) => Failure | undefined {
  // Most requests have the host of the one before.
  let lastOwn = ''
  let lastForeign = ''

  return ({ headers }) => {
    const { host } = headers
    if (host === undefined || host === lastOwn) return undefined
    if (host !== lastForeign) {
      if (isOwn(host)) {
        lastOwn = host
        return undefined
      }
      lastForeign = host
    }
    return isOfForeignPage(headers, host) ? foreign() : undefined
  }
}

/** The name or the address in a `Host` header, without its port. */
function toName(host: string): string {
  const name = host.replace(/:\d*$/, '').toLowerCase()
  return name.startsWith('[') ? name.slice(1, -1) : name.replace(/\.$/, '')
}

function isOfForeignPage(headers: IncomingMessage['headers'], host: string): boolean {
  const { origin } = headers
  // A page of another origin says so, and reads no more than CORS allows it to.
  if (origin !== undefined) return origin.replace(/^https?:\/\//, '') === host
  const isBrowser = headers['user-agent']?.startsWith('Mozilla/') ?? false
  return (
    isBrowser || headers['sec-fetch-mode'] !== undefined || headers['sec-fetch-site'] !== undefined
  )
}

function foreign(): Failure {
  return malformed(
    'The header Host names a host that this service does not know. Open it by its address, or have its operator set PUBLIC_URL to the address that browsers use.',
  )
}
