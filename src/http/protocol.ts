import type { IncomingMessage } from 'node:http'
import { Failure } from '../contract/errors.ts'
import { jsonContentType } from '../contract/formats.ts'
import {
  contentTypeOptions,
  corsRequestHeaders,
  corsResponseHeaders,
  preflightSeconds,
} from '../contract/headers.ts'
import { limits, type Timeouts } from '../contract/limits.ts'
import { type Exchange, toChallenge, toFailureAnswer } from './answer.ts'
import { STATUS_CODES } from './node/node-http.ts'
import type { ClientError } from './node/node-server.ts'

const hostPattern = /^(?:[\w.~!$&'()*+;=%-]+|\[[0-9A-Fa-f:.]+\])(?::\d{0,5})?$/
/** Visible ASCII without the characters that a URL must escape. */
const targetPattern = /^[!$-;=?-[\]_a-z~]*$/
const absoluteForm = /^https?:\/\/([^/?#]*)(.*)$/i

/** Finds protocol errors that Node lets pass. They are judged before the request itself. */
export function findProtocolFault(exchange: Exchange): Failure | undefined {
  const { request, url } = exchange
  return (
    findVersionFault(request) ??
    findTargetFault(request, url) ??
    findHostFault(request) ??
    findHeaderFault(request) ??
    findEscapeFault(exchange)
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
  if (isGivenTwice(rawHeaders, 'authorization', authorization)) {
    return malformed('The header Authorization is given twice.', toChallenge('invalid_request'))
  }
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

function findEscapeFault({ url, path }: Exchange): Failure | undefined {
  if (path !== undefined) return undefined
  const isBroken = /%(?![0-9a-f]{2})/i.test(url)
  return malformed(
    isBroken
      ? 'The URL has a percent sign that does not start an escape.'
      : 'The escapes in the URL are not UTF-8.',
  )
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

/** The decoded path of a URL; undefined if an escape is broken. */
export function toPath(url: string): string | undefined {
  const end = url.indexOf('?')
  const path = end === -1 ? url : url.slice(0, end)
  if (!path.includes('%')) return path
  try {
    return decodeURI(path)
  } catch {
    return undefined
  }
}

function toAuthority(target: string): string | undefined {
  return target.startsWith('/') ? undefined : absoluteForm.exec(target)?.[1]
}

/** Which origins may call: every one, or those in the list. */
export type AllowedOrigins = '*' | readonly string[]

/** Adds the headers that let a page of another origin read the answer. */
export function allowOrigin({ request, fields }: Exchange, allowed: AllowedOrigins): void {
  const { origin } = request.headers
  if (allowed !== '*') fields.push('Vary', 'Origin')
  if (origin === undefined || (allowed !== '*' && !allowed.includes(origin))) return
  fields.push('Access-Control-Allow-Origin', allowed === '*' ? '*' : origin)
  fields.push('Access-Control-Expose-Headers', corsResponseHeaders)
}

/** The headers that answer a preflight. */
export function toPreflightHeaders(methods: string): Record<string, string> {
  return {
    'Access-Control-Allow-Methods': methods,
    'Access-Control-Allow-Headers': corsRequestHeaders,
    'Access-Control-Max-Age': String(preflightSeconds),
  }
}

/** The failure of a request line or a header that breaks the rules of HTTP. */
function malformed(message: string, headers: Record<string, string> = {}): Failure {
  return new Failure(40000, message, { headers })
}

/** The connection ends with the answer: Node parses nothing after an error. */
const closing = { headers: { Connection: 'close' } }

/** The failure with which an error of Node's parser is answered. */
export function toClientFailure(error: ClientError, timeouts: Timeouts): Failure {
  const { code = '' } = error
  if (code === 'ERR_HTTP_REQUEST_TIMEOUT') {
    const seconds = [timeouts.headersTimeoutMs, timeouts.requestTimeoutMs].map((ms) => ms / 1000)
    return new Failure(
      40800,
      `The headers must be complete within ${seconds[0]} s, the whole request within ${seconds[1]} s.`,
      closing,
    )
  }
  if (code === 'HPE_HEADER_OVERFLOW') {
    return new Failure(
      43100,
      `The headers must have at most ${limits.headerBytes} bytes and ${limits.headerFields} fields.`,
      closing,
    )
  }
  if (code === 'HPE_INVALID_VERSION' && !hasKnownVersion(error.rawPacket)) {
    return new Failure(50500, 'The request must be HTTP/1.1 or HTTP/1.0.', closing)
  }
  if (code === 'HPE_INVALID_EOF_STATE') {
    return new Failure(40000, 'The connection ended before the request did.', closing)
  }
  return new Failure(40000, 'The request is not well-formed HTTP.', closing)
}

/** Node also complains about a valid version when no line break follows it. */
function hasKnownVersion(packet: Buffer | undefined): boolean {
  return / HTTP\/1\.[01][^\d\r]/.test(packet?.toString('latin1') ?? '')
}

/** A failure as raw HTTP, for a connection that has no request to answer. */
export function toRawAnswer(failure: Failure, requestId: string): string {
  const { status, headers, body } = toFailureAnswer(failure)
  const fields = {
    ...headers,
    'Content-Type': jsonContentType,
    'X-Request-Id': requestId,
    'X-Content-Type-Options': contentTypeOptions,
    Date: new Date().toUTCString(),
    Connection: 'close',
    'Content-Length': Buffer.byteLength(body),
  }
  const lines = Object.entries(fields).map(([name, value]) => `${name}: ${value}\r\n`)
  return `HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\n${lines.join('')}\r\n${body}`
}
