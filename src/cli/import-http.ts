import { Agent as HttpAgent, request as requestHttp } from 'node:http'
import { Agent as HttpsAgent, request as requestHttps } from 'node:https'
import { setTimeout as sleep } from 'node:timers/promises'
import { WrongConfig } from '../config.ts'
import type { ErrorBody, NewPlant } from '../contract/shapes.ts'
import { parseJson } from '../json/parse.ts'
import { type OnConflictFlag, type Outcome, type Target, toOutcome } from './import-target.ts'
import { CommandFailed, exitCodes } from './outcome.ts'

const connections = 32
const answerTimeoutMs = 30_000
/** How often a request is sent that the service could not serve, or that got no answer. */
const maxAttempts = 6
const pauseMs = 500

interface Answer {
  readonly status: number
  readonly retryAfterMs: number
  readonly body: string
}

/** A running service: one request for each plant, several at a time. Each can be sent again without harm. */
export function openHttpTarget(
  address: string,
  token: string,
  onConflict: OnConflictFlag,
  signal: AbortSignal,
): Target {
  const url = toBaseUrl(address)
  const isSecure = url.startsWith('https:')
  const agent = new (isSecure ? HttpsAgent : HttpAgent)({
    keepAlive: true,
    maxSockets: connections,
  })
  const request = isSecure ? requestHttps : requestHttp
  /** Until then the token may make no request: the service has a limit. */
  let pausedUntil = 0

  function send(
    method: string,
    id: bigint,
    headers: Record<string, string>,
    body = '',
  ): Promise<Answer> {
    return new Promise((resolve, reject) => {
      const sent = request(`${url}/plants/${id}`, {
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
        })
        response.on('error', reject)
        response.on('end', () => {
          const retryAfterMs = toMilliseconds(response.headers['retry-after'])
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

  async function sendUntilAnswered(...parts: Parameters<typeof send>): Promise<Answer> {
    for (let attempt = 1; ; attempt++) {
      while (performance.now() < pausedUntil) {
        await sleep(pausedUntil - performance.now(), undefined, { signal })
      }
      const answer = await send(...parts).catch((error: unknown) => error as Error)
      signal.throwIfAborted()
      if (answer instanceof Error) {
        if (attempt === maxAttempts) throw givenUp(url, answer)
        await sleep(attempt * pauseMs, undefined, { signal })
      } else if (answer.status === 429) {
        // Its time will come: that is no failure, however often it happens.
        pausedUntil = Math.max(pausedUntil, performance.now() + answer.retryAfterMs)
        attempt--
      } else if (passing.includes(answer.status)) {
        if (attempt === maxAttempts) throw givenUp(url, answer)
        await sleep(answer.retryAfterMs, undefined, { signal })
      } else return requireGranted(answer)
    }
  }

  function put({ id, name, tag }: NewPlant, headers: Record<string, string> = {}): Promise<Answer> {
    const body = JSON.stringify({ name, tag })
    return sendUntilAnswered('PUT', id, { 'Content-Type': 'application/json', ...headers }, body)
  }

  async function putOne(plant: NewPlant): Promise<Outcome> {
    for (let attempt = 1; attempt <= maxAttempts; attempt++) {
      const created = await put(plant, { 'If-None-Match': '*' })
      if (created.status === 201) return { is: 'stored' }
      if (invalid.includes(created.status)) return { is: 'invalid', reason: toMessage(created) }
      if (created.status !== 412) throw unexpected(url, created)
      const outcome = await compare(plant)
      if (outcome !== undefined) return outcome
    }
    throw new CommandFailed(
      exitCodes.inputOutput,
      `The plant ${plant.id} comes and goes at ${url}.`,
    )
  }

  /** What becomes of a plant whose id is taken; undefined when it is taken no longer. */
  async function compare(plant: NewPlant): Promise<Outcome | undefined> {
    const current = await sendUntilAnswered('GET', plant.id, {})
    if (current.status === 404) return undefined
    if (current.status !== 200) throw unexpected(url, current)
    const { name, tag } = parseJson(current.body) as NewPlant
    if (name === plant.name && tag === plant.tag) return { is: 'already there' }
    if (onConflict !== 'replace') return toOutcome('conflict', onConflict)
    const replaced = await put(plant)
    if (replaced.status !== 200 && replaced.status !== 201) throw unexpected(url, replaced)
    return { is: 'replaced' }
  }

  return {
    put(plants) {
      // Of several with one id, each waits for the one before: their order decides.
      const turns = new Map<bigint, Promise<Outcome>>()
      return Promise.all(
        plants.map((plant) => {
          const turn = (turns.get(plant.id) ?? Promise.resolve()).then(() => putOne(plant))
          turns.set(plant.id, turn)
          return turn
        }),
      )
    },

    async close() {
      agent.destroy()
    },
  }
}

/** What may pass: no answer in time, overloaded, out of reach, not confirmed. */
const passing = [408, 502, 503, 504]
const invalid = [400, 413]

function toBaseUrl(address: string): string {
  const url = URL.parse(address)
  const isPlain = url !== null && url.username === '' && url.password === ''
  if (isPlain && /^https?:$/.test(url.protocol)) return url.href.replace(/\/+$/, '')
  throw new WrongConfig(['--url must be the address of a service, such as http://127.0.0.1:3000.'])
}

function requireGranted(answer: Answer): Answer {
  if (answer.status !== 401 && answer.status !== 403) return answer
  throw new CommandFailed(
    exitCodes.noPermission,
    `The service refuses the token: ${toMessage(answer)}`,
  )
}

function givenUp(url: string, answer: Answer | Error): CommandFailed {
  const reason = answer instanceof Error ? answer.message : toMessage(answer)
  return new CommandFailed(exitCodes.inputOutput, `The service at ${url} cannot be used: ${reason}`)
}

function unexpected(url: string, answer: Answer): CommandFailed {
  const reason = `${answer.status}: ${toMessage(answer)}`
  return new CommandFailed(
    exitCodes.inputOutput,
    `${url} does not answer as a Plant Store does (${reason})`,
  )
}

function toMessage({ body }: Answer): string {
  try {
    return (JSON.parse(body) as ErrorBody).message
  } catch {
    // Of somebody else: it may have anything in it.
    return body.slice(0, 200).replaceAll(/\p{C}+/gu, ' ')
  }
}

/** How long to wait, as a header says it in seconds. One that gives a date is met a little later than it could be. */
function toMilliseconds(retryAfter: string | undefined): number {
  const seconds = Number(retryAfter ?? 0)
  return Math.max(Number.isFinite(seconds) ? seconds * 1_000 : 10_000, pauseMs)
}
