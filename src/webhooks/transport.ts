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
  const inFlight = new Set<() => void>()

  /** Sends again if the receiver had closed a kept connection: nothing was delivered on it. */
  async function post(one: Post): Promise<Outcome> {
    let outcome = await attempt(one)
    if (outcome === 'stale connection') outcome = await attempt(one)
    return outcome === 'stale connection' ? toFailure('the connection was closed') : outcome
  }

  function attempt({ headers, body, mayWrite }: Post): Promise<Outcome | 'stale connection'> {
    return new Promise((resolve) => {
      const length = Buffer.byteLength(body)
      const sent = request({ ...fixed, headers: { ...headers, 'content-length': length } })
      const late = `no answer within ${timeoutMs / 1000} s`
      const timer = setTimeout(() => finish(toOutcomeOr(late)), timeoutMs)
      let status: number | undefined
      let retryAfter: string | undefined
      let readBefore = 0
      const breakOff = () => finish(toFailure('broken off'))
      inFlight.add(breakOff)

      function toOutcome(): Outcome {
        const isSuccess = status !== undefined && status >= 200 && status < 300
        const error = isSuccess ? undefined : `answered ${status}`
        return { status, error, retryAfterMs: toRetryAfterMs(retryAfter, Date.now()) }
      }

      /** A status counts as the answer, even if an error follows it. */
      function toOutcomeOr(error: string): Outcome {
        return status === undefined ? toFailure(error) : toOutcome()
      }

      function finish(outcome: Outcome | 'stale connection', connection?: 'keep'): void {
        if (!inFlight.delete(breakOff)) return
        clearTimeout(timer)
        sent.socket?.off('data', boundAnswer)
        if (connection !== 'keep') {
          sent.destroy()
          // Destroying a request whose answer is complete leaves its connection open.
          sent.socket?.destroy()
        }
        resolve(outcome)
      }

      function write(): void {
        if (mayWrite()) sent.end(body)
        else finish(toFailure('broken off'))
      }

      // Counted on the socket, because the parser skips blank lines and the like without a bound.
      function boundAnswer(): void {
        if (Number(sent.socket?.bytesRead) - readBefore <= maxAnswerBytes) return
        finish(toOutcomeOr('the answer is too large'))
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
        const onEnd = () => finish(toOutcome(), sent.writableFinished ? 'keep' : undefined)
        answer.resume().on('end', onEnd)
        answer.on('error', () => finish(toOutcome()))
      })
      sent.on('error', (error: NodeJS.ErrnoException) => {
        const isStale = sent.reusedSocket && error.code === 'ECONNRESET' && status === undefined
        if (isStale) finish('stale connection')
        else finish(toOutcomeOr(explainError(error)))
      })
    })
  }

  return {
    post,
    close() {
      for (const breakOff of inFlight) breakOff()
      agent.destroy()
    },
  }
}

function toFailure(error: string): Outcome {
  return { status: undefined, error, retryAfterMs: 0 }
}

const reasons: Record<string, string> = {
  ECONNREFUSED: 'the connection was refused',
  ECONNRESET: 'the connection was closed before an answer came',
  EPIPE: 'the connection was closed before an answer came',
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
function explainError({ code = '' }: NodeJS.ErrnoException): string {
  const known = reasons[code]
  if (known !== undefined) return known
  if (code.startsWith('HPE_')) return 'the answer is not HTTP'
  return code.startsWith('ERR_SSL_') || code === 'EPROTO'
    ? 'TLS could not be agreed on'
    : `the request failed (${code || 'unknown'})`
}
