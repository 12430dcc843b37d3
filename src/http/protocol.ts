import type { IncomingMessage } from 'node:http'
import { Failure } from '../contract/errors.ts'
import { corsRequestHeaders, corsResponseHeaders, preflightSeconds } from '../contract/headers.ts'
import { limits } from '../contract/limits.ts'
import { addField, type Exchange } from './exchange.ts'
import { authorizationTwice, malformed } from './failures.ts'

const hostPattern = /^(?:[\w.~!$&'()*+;=%-]+|\[[0-9A-Fa-f:.]+\])(?::\d{0,5})?$/
/** Visible ASCII without the characters that a URL must escape. */
const targetPattern = /^[!$-;=?-[\]_a-z~]*$/
const absoluteForm = /^https?:\/\/([^/?#]*)(.*)$/i

/** Finds protocol errors that Node lets pass. They are judged before the request itself. */
export function findProtocolFault({ request, url }: Exchange): Failure | undefined {
  return (
    findVersionFault(request) ??
    findTargetFault(request, url) ??
    findHostFault(request) ??
    findHeaderFault(request)
  )
}

/** Finds the fault of a URL that has no path because its escapes are broken. */
export function findEscapeFault(url: string, path: string | undefined): Failure | undefined {
  if (path !== undefined) return undefined
  const isBroken = /%(?![0-9a-f]{2})/i.test(url)
  return malformed(
    isBroken
      ? 'The URL has a percent sign that does not start an escape.'
      : 'The escapes in the URL are not UTF-8.',
  )
}

function findVersionFault({ httpVersion }: IncomingMessage): Failure | undefined {
  if (httpVersion === '1.1' || httpVersion === '1.0') return undefined
  return new Failure(50500, 'The request must be HTTP/1.1 or HTTP/1.0.')
}

function findTargetFault(
  { url: target = '', method }: IncomingMessage,
  url: string,
): Failure | undefined {
  if (target.length > limits.urlBytes) {
    return new Failure(41400, `The URL must have at most ${limits.urlBytes} characters.`)
  }
  if (url === '*' && method === 'OPTIONS') return undefined
  const host = toAuthority(target)
  const isHost = host === undefined || hostPattern.test(host)
  if (isHost && url.startsWith('/') && targetPattern.test(url)) return undefined
  return malformed(
    'The URL must start with a slash and have its special characters percent-encoded.',
  )
}

function findHostFault({ headers, rawHeaders, httpVersion }: IncomingMessage): Failure | undefined {
  const { host } = headers
  if (host === undefined) {
    return httpVersion === '1.0' ? undefined : malformed('The header Host is missing.')
  }
  if (isGivenTwice(rawHeaders, 'host', host)) return malformed('The header Host is given twice.')
  return hostPattern.test(host) ? undefined : malformed('The header Host is not a host name.')
}

function findHeaderFault(request: IncomingMessage): Failure | undefined {
  const { headers, rawHeaders } = request
  const { authorization, expect } = headers
  if (isGivenTwice(rawHeaders, 'authorization', authorization)) return authorizationTwice()
  if (isGivenTwice(rawHeaders, 'content-type', headers['content-type'])) {
    return malformed('The header Content-Type is given twice.')
  }
  if (isFramedOddly(request)) {
    return malformed('The header Transfer-Encoding must be "chunked", in HTTP/1.1.')
  }
  if (expect !== undefined && expect.toLowerCase() !== '100-continue') {
    return new Failure(41700, 'The header Expect must be "100-continue".')
  }
  return undefined
}

/**
 * Whether nothing that follows on the connection can be trusted: a proxy may disagree with us on
 * where the request ends, and after one with `Upgrade` Node drops the rest of the packet.
 */
export function isLastRequest(request: IncomingMessage): boolean {
  return request.headers.upgrade !== undefined || isFramedOddly(request)
}

function isFramedOddly({ headers, httpVersion }: IncomingMessage): boolean {
  const transferEncoding = headers['transfer-encoding']
  if (transferEncoding === undefined) return false
  return transferEncoding.toLowerCase() !== 'chunked' || httpVersion === '1.0'
}

/** Node joins fields of one name with a comma, so raw fields are counted only if there is one. */
function isGivenTwice(rawHeaders: string[], name: string, value: string | undefined): boolean {
  if (value === undefined || !value.includes(',')) return false
  const names = rawHeaders.filter((_, index) => index % 2 === 0)
  return names.filter((given) => given.toLowerCase() === name).length > 1
}

/** The path and query of a request target, which may be in absolute form. */
export function toOriginForm(target: string): string {
  if (target.startsWith('/')) return target
  const rest = absoluteForm.exec(target)?.[2]
  if (rest === undefined) return target
  return rest.startsWith('/') ? rest : `/${rest}`
}

function toAuthority(target: string): string | undefined {
  return target.startsWith('/') ? undefined : absoluteForm.exec(target)?.[1]
}

/** Which origins may call: every one, or those in the list. */
export type AllowedOrigins = '*' | readonly string[]

/** Adds the headers that let a page of another origin read the answer. */
export function allowOrigin(exchange: Exchange, allowed: AllowedOrigins): void {
  const { origin } = exchange.request.headers
  if (allowed !== '*') addField(exchange, 'Vary', 'Origin')
  if (origin === undefined || (allowed !== '*' && !allowed.includes(origin))) return
  addField(exchange, 'Access-Control-Allow-Origin', allowed === '*' ? '*' : origin)
  addField(exchange, 'Access-Control-Expose-Headers', corsResponseHeaders)
}

/** The headers that answer a preflight. */
export function toPreflightHeaders(methods: string): Record<string, string> {
  return {
    'Access-Control-Allow-Methods': methods,
    'Access-Control-Allow-Headers': corsRequestHeaders,
    'Access-Control-Max-Age': String(preflightSeconds),
  }
}
