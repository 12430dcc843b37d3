import { Agent as HttpAgent, request as requestHttp } from 'node:http'
import { Agent as HttpsAgent, request as requestHttps } from 'node:https'
import { setTimeout as sleep } from 'node:timers/promises'
import { limits } from '../../contract/limits.ts'
import type { ErrorBody } from '../../contract/shapes.ts'
import { CommandFailed, exitCodes } from '../exit.ts'

const maxConnections = 32
const answerTimeoutMs = 30_000
/** How often a request is sent while the service is unavailable or does not answer. */
export const maxAttempts = 6
/** The pause after a lost connection grows by this much with each attempt. */
const lostPauseMs = 500
const minPauseMs = 100
const maxPauseMs = 60_000
/** The answers of a service that may recover: timed out, overloaded, unreachable, not confirmed. */
const retriedStatuses = [408, 502, 503, 504]

/** A plant of 1 MiB, in which each byte is written as an escape of 6 characters. */
const maxAnswerCharacters = 6 * limits.bodyBytes + 1_024
const maxMessageCharacters = 200

export interface Answer {
  readonly status: number
  readonly retryAfterMs: number
  readonly body: string
}

export interface Request {
  readonly method: 'GET' | 'PUT'
  readonly path: string
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string
}

/** Sends requests to one service, several at a time, and repeats those that it could not serve. */
export interface HttpClient {
  /** Answers the first response that is final. A request must be safe to repeat. */
  send(request: Request): Promise<Answer>
  close(): void
}

export function openHttpClient(url: string, token: string, signal: AbortSignal): HttpClient {
  const isSecure = url.startsWith('https:')
  const agent = new (isSecure ? HttpsAgent : HttpAgent)({
    keepAlive: true,
    maxSockets: maxConnections,
  })
  const request = isSecure ? requestHttps : requestHttp
  /** The rate limit of the service allows no request before this time. */
  let pausedUntil = 0

  function sendOnce({ method, path, headers, body }: Request): Promise<Answer> {
    return new Promise((resolve, reject) => {
      const sent = request(url + path, {
        agent,
        method,
        signal,
        timeout: answerTimeoutMs,
        headers: { Authorization: `Bearer ${token}`, ...headers },
      })
      sent.on('response', (response) => {
        let text = ''
        response.setEncoding('utf8').on('data', (part: string) => {
          text += part
          if (text.length > maxAnswerCharacters) response.destroy(tooLong())
        })
        response.on('error', reject)
        response.on('end', () => {
          const retryAfterMs = toPauseMs(response.headers['retry-after'])
          resolve({ status: response.statusCode ?? 0, retryAfterMs, body: text })
        })
      })
      sent.on('timeout', () =>
        sent.destroy(new Error(`no answer within ${answerTimeoutMs / 1000} s`)),
      )
      sent.on('error', reject)
      sent.end(body)
    })
  }

  async function send(one: Request): Promise<Answer> {
    for (let attempt = 1; ; attempt++) {
      while (performance.now() < pausedUntil) {
        await sleep(pausedUntil - performance.now(), undefined, { signal })
      }
      const answer = await sendOnce(one).catch((error: unknown) => error as Error)
      signal.throwIfAborted()
      if (answer instanceof Error) {
        if (attempt >= maxAttempts) throw unavailable(url, answer.message)
        await sleep(attempt * lostPauseMs, undefined, { signal })
      } else if (answer.status === 429) {
        // A request that waits for its turn has not failed, however often that happens.
        pausedUntil = Math.max(pausedUntil, performance.now() + answer.retryAfterMs)
        attempt--
      } else if (retriedStatuses.includes(answer.status)) {
        if (attempt >= maxAttempts) throw unavailable(url, toMessage(answer))
        await sleep(answer.retryAfterMs, undefined, { signal })
      } else return requireGranted(answer)
    }
  }

  return { send, close: () => agent.destroy() }
}

function tooLong(): Error {
  return new Error(`The answer is longer than ${maxAnswerCharacters} characters.`)
}

function unavailable(url: string, reason: string): CommandFailed {
  return new CommandFailed(exitCodes.inputOutput, `The service at ${url} is unavailable: ${reason}`)
}

function requireGranted(answer: Answer): Answer {
  if (answer.status !== 401 && answer.status !== 403) return answer
  throw new CommandFailed(
    exitCodes.noPermission,
    `The service rejected the token: ${toMessage(answer)}`,
  )
}

/** The message of an error answer, or any other body; in either case no more than its beginning. */
export function toMessage({ body }: Answer): string {
  return findMessage(body).slice(0, maxMessageCharacters)
}

function findMessage(body: string): string {
  try {
    const { message } = JSON.parse(body) as Partial<ErrorBody>
    return typeof message === 'string' ? message : body
  } catch {
    return body
  }
}

/**
 * The pause that Retry-After asks for, within bounds. The form with a date counts as the longest.
 */
function toPauseMs(retryAfter: string | undefined): number {
  const seconds = Number(retryAfter ?? 0)
  const wantedMs = Number.isFinite(seconds) ? seconds * 1_000 : maxPauseMs
  return Math.min(Math.max(wantedMs, minPauseMs), maxPauseMs)
}
