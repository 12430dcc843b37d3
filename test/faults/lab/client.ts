import { Agent, type IncomingHttpHeaders, request } from 'node:http'

export interface Reply {
  readonly status: number
  readonly headers: IncomingHttpHeaders
  readonly body: string
}

/** A reply, or why there is none: no service listened, or the connection was lost. */
export type Result = Reply | 'not sent' | 'not answered'

export interface Message {
  readonly method?: string
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string
}

export type Client = ReturnType<typeof openClient>

/** Longer than any answer of a working service takes. */
const maxWaitMs = 60_000

/** Whether a client keeps its connections alive or opens one for each request. */
export type Connections = 'kept' | 'new'

/** Opens a client that never sends a request twice. */
export function openClient(token: string, connections: Connections = 'kept') {
  const agent = new Agent({ keepAlive: connections === 'kept' })
  const credentials = { Authorization: `Bearer ${token}`, 'Content-Type': 'application/json' }

  function send(url: string, { method = 'GET', headers = {}, body }: Message = {}) {
    const { promise, resolve } = Promise.withResolvers<Result>()
    const all = { ...credentials, ...headers }
    const sent = request(url, { method, agent, headers: all }, (answer) => {
      let text = ''
      answer.setEncoding('utf8').on('data', (chunk: string) => {
        text += chunk
      })
      answer.on('error', () => resolve('not answered'))
      answer.on('end', () =>
        resolve({ status: answer.statusCode ?? 0, headers: answer.headers, body: text }),
      )
    })
    sent.setTimeout(maxWaitMs, () => sent.destroy())
    sent.on('error', ({ code }: NodeJS.ErrnoException) =>
      resolve(code === 'ECONNREFUSED' ? 'not sent' : 'not answered'),
    )
    sent.end(body)
    return promise
  }

  return { send, close: () => agent.destroy() }
}

/** Parses JSON with exact ids. */
export function parseExactly<Value>(text: string): Value {
  const revive = (key: string, value: unknown, { source }: { source?: string }) =>
    key === 'id' && source !== undefined ? BigInt(source) : value
  return JSON.parse(text, revive as (key: string, value: unknown) => unknown)
}

/** What is stored under an id by an answer. A plant with another id gets a content of its own. */
export function toContent(id: bigint, body: string): string {
  const plant = parseExactly<{ id?: bigint; name: string }>(body)
  return plant.id === undefined || plant.id === id ? plant.name : `${plant.name} as ${plant.id}`
}
