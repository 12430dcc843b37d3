import type { RequestOptions } from 'node:http'
import https from 'node:https'
import { urlToHttpOptions } from 'node:url'
import { type Outcome, toRetryAfterMs } from './schedule.ts'

export interface Post {
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
  /** Called right before anything is written to the connection. */
  readonly mayWrite: () => boolean
}

/** Sends requests to one receiver. */
export interface Transport {
  post(post: Post): Promise<Outcome>
  /** Aborts the requests in flight, and closes every connection. */
  close(): void
}

export interface TransportOptions {
  readonly url: string
  readonly timeoutMs: number
  /** Certificates to trust instead of the default ones. */
  readonly authorities?: readonly string[] | undefined
}

/** The most that is read of an answer, headers and body together. */
const maxAnswerBytes = 16 * 1024
/** Less than the 5 s after which common servers close an idle connection. */
const idleMs = 4_000

/** Opens a transport. Nothing is connected before the first request. */
export function openTransport(options: TransportOptions): Transport {
  const { timeoutMs, authorities } = options
  const url = new URL(options.url)
  // An import of `node:http` would load Node's web client as well.
  const http = process.getBuiltinModule('node:http')
  const { request, Agent } = url.protocol === 'https:' ? https : http
  const agent = new Agent({ keepAlive: true, timeout: idleMs })
  const { auth: _, ...target } = urlToHttpOptions(url)
  const fixed: RequestOptions & https.RequestOptions = {
    ...target,
    method: 'POST',
    agent,
    maxHeaderSize: maxAnswerBytes,
    // Explicit: NODE_TLS_REJECT_UNAUTHORIZED could disable the check.
    rejectUnauthorized: true,
    ...(authorities && { ca: [...authorities] }),
  }

  function post({ headers, body, mayWrite }: Post): Promise<Outcome> {
    return new Promise((resolve) => {
      const length = Buffer.byteLength(body)
      const sent = request({ ...fixed, headers: { ...headers, 'content-length': length } })
      const late = () => giveUp(`no answer within ${timeoutMs / 1000} s`)
      const timer = setTimeout(late, timeoutMs).unref()
      let status: number | undefined
      let retryAfter: string | undefined
      let error: string | undefined
      let isStale = false
      let readBefore = 0

      function giveUp(why: string): void {
        error = why
        // Destroying a request whose answer is complete would leave its connection open.
        sent.socket?.destroy()
      }

      // Counted on the socket, because the parser skips blank lines and the like without a bound.
      function boundAnswer(): void {
        const bytes = Number(sent.socket?.bytesRead) - readBefore
        if (bytes > maxAnswerBytes) giveUp('the answer is too large')
      }

      function write(): void {
        if (mayWrite()) sent.end(body)
        else giveUp('broken off')
      }

      sent.on('socket', (socket) => {
        readBefore = socket.bytesRead
        socket.on('data', boundAnswer)
        // Written once it is connected: by then, this process may have lost its lease.
        if (!socket.connecting) write()
        else socket.once(url.protocol === 'https:' ? 'secureConnect' : 'connect', write)
      })
      sent.on('response', (answer) => {
        status = answer.statusCode
        retryAfter = answer.headers['retry-after']
        // A connection on which the body is not yet sent would wait for a reader.
        answer.on('end', () => sent.writableFinished || sent.socket?.destroy())
        // The status counts as the answer, whatever follows it.
        answer.on('error', () => {}).resume()
      })
      sent.on('error', (failure: NodeJS.ErrnoException) => {
        // The receiver has closed an idle connection at the same moment.
        isStale = error === undefined && sent.reusedSocket && failure.code === 'ECONNRESET'
        error ??= explain(failure)
      })
      sent.on('close', () => {
        clearTimeout(timer)
        sent.socket?.off('data', boundAnswer)
        if (status === undefined) {
          if (isStale) return resolve(post({ headers, body, mayWrite }))
          return resolve({ status, error: error ?? closed, retryAfterMs: 0 })
        }
        const isSuccess = status >= 200 && status < 300
        const retryAfterMs = toRetryAfterMs(retryAfter, Date.now())
        resolve({ status, error: isSuccess ? undefined : `answered ${status}`, retryAfterMs })
      })
    })
  }

  return { post, close: () => agent.destroy() }
}

const closed = 'the connection was closed before an answer came'

const reasons: Record<string, string> = {
  ECONNREFUSED: 'the connection was refused',
  ECONNRESET: closed,
  EPIPE: closed,
  ENOTFOUND: 'the host name is not known',
  EAI_AGAIN: 'the host name could not be looked up',
  EHOSTUNREACH: 'the host cannot be reached',
  ENETUNREACH: 'the network cannot be reached',
  ETIMEDOUT: 'the connection timed out',
  HPE_HEADER_OVERFLOW: 'the headers of the answer are too large',
  CERT_HAS_EXPIRED: 'the certificate has expired',
  DEPTH_ZERO_SELF_SIGNED_CERT: 'the certificate is not trusted',
  SELF_SIGNED_CERT_IN_CHAIN: 'the certificate is not trusted',
  UNABLE_TO_GET_ISSUER_CERT_LOCALLY: 'the certificate is not trusted',
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: 'the certificate is not trusted',
  ERR_TLS_CERT_ALTNAME_INVALID: 'the certificate is for another host',
}

/** Explains why a request failed. The message of the error itself could hold parts of the URL. */
function explain({ code = '' }: NodeJS.ErrnoException): string {
  const known = reasons[code]
  if (known !== undefined) return known
  if (code.startsWith('HPE_')) return 'the answer is not HTTP'
  return code.startsWith('ERR_SSL_') || code === 'EPROTO'
    ? 'TLS could not be agreed on'
    : `the request failed (${code || 'unknown'})`
}
