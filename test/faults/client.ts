import { Agent, type IncomingHttpHeaders, request } from 'node:http'

export interface Reply {
  readonly status: number
  readonly headers: IncomingHttpHeaders
  readonly body: string
}

/** A reply, or why there is none: nobody listened, so that nothing was sent, or nobody answered. */
export type Result = Reply | 'not sent' | 'not answered'

export interface Message {
  readonly method?: string
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string
}

export interface Client {
  send(url: string, message?: Message): Promise<Result>
  close(): void
}

/** Longer than any answer of a service that is well. */
const patienceMs = 60_000

/** Whether a client keeps its connections, or opens one for every request. */
export type Connections = 'kept' | 'new'

/** A client that never sends anything twice. */
export function openClient(token: string, connections: Connections = 'kept'): Client {
  const agent = new Agent({ keepAlive: connections === 'kept' })
  const credentials = { Authorization: `Bearer ${token}`, 'Content-Type': 'application/json' }

  function send(url: string, { method = 'GET', headers = {}, body }: Message = {}) {
    return new Promise<Result>((resolve) => {
      const options = { method, agent, headers: { ...credentials, ...headers } }
      const sent = request(url, options, (answer) => {
        let text = ''
        answer.setEncoding('utf8').on('data', (chunk: string) => {
          text += chunk
        })
        answer.on('error', () => resolve('not answered'))
        answer.on('end', () =>
          resolve({ status: answer.statusCode ?? 0, headers: answer.headers, body: text }),
        )
      })
      sent.setTimeout(patienceMs, () => sent.destroy())
      sent.on('error', ({ code }: NodeJS.ErrnoException) =>
        resolve(code === 'ECONNREFUSED' ? 'not sent' : 'not answered'),
      )
      sent.end(body)
    })
  }

  return { send, close: () => agent.destroy() }
}

interface ReadPlant {
  readonly id?: bigint
  readonly name: string
}

/** Reads JSON with exact ids. */
export function parseExactly<Value>(text: string): Value {
  const revive = (key: string, value: unknown, { source }: { source?: string }) =>
    key === 'id' && source !== undefined ? BigInt(source) : value
  return JSON.parse(text, revive as (key: string, value: unknown) => unknown)
}

/** What an answer says is stored under an id. A plant with another id is told apart from every other content. */
export function toContent(id: bigint, body: string): string {
  const plant = parseExactly<ReadPlant>(body)
  return plant.id === undefined || plant.id === id ? plant.name : `${plant.name} as ${plant.id}`
}
