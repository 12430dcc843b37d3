import { once } from 'node:events'
import http from 'node:http'
import { text } from 'node:stream/consumers'
import { Webhook } from 'standardwebhooks'
import { listen } from '../support/listen.ts'
import { waitUntil } from '../support/wait.ts'

/** A request that a receiver got. */
export interface Received {
  readonly id: string
  readonly event: string
  readonly plantId: string
  readonly body: string
  readonly headers: http.IncomingHttpHeaders
  readonly receivedAt: number
}

/** A status, or one with headers; a promise holds the answer back. */
export type TestAnswer =
  | number
  | { readonly status: number; readonly headers: Record<string, string> }

export interface TestReceiver {
  readonly url: string
  readonly received: Received[]
  /** The most requests that were here at the same time. */
  mostAtOnce: number
  /** Plants of which two changes were here at the same time. */
  readonly together: string[]
  /** How the next requests are answered. */
  answer: (received: Received) => TestAnswer | Promise<TestAnswer>
  /** Breaks off every connection, refuses new ones for a moment, and comes back. */
  restart(): Promise<void>
  /** Resolves when this many different changes were answered with success. */
  waitFor(changes: number): Promise<void>
  /** Answers a request of the test itself, after all that were sent before. */
  answerOther(): Promise<void>
  /** The ids of changes that were answered with success, each once, in order. */
  taken(): string[]
}

/** Starts a receiver on a free port. It is closed with the test. */
export async function openTestReceiver(): Promise<TestReceiver> {
  const taken = new Set<string>()
  const here = new Map<string, number>()
  const server = http.createServer(async (request, response) => {
    if (request.method !== 'POST') {
      response.end()
      return
    }
    const body = await text(request)
    const [, plantId = ''] = /^\{"id":(-?\d+),/.exec(body) ?? []
    const received = {
      id: String(request.headers['webhook-id']),
      event: String(request.headers['plant-event']),
      plantId,
      body,
      headers: request.headers,
      receivedAt: performance.now(),
    }
    receiver.received.push(received)
    if (here.has(plantId)) receiver.together.push(plantId)
    here.set(plantId, (here.get(plantId) ?? 0) + 1)
    receiver.mostAtOnce = Math.max(receiver.mostAtOnce, here.size)
    const answer = await receiver.answer(received)
    here.delete(plantId)
    const { status, headers } =
      typeof answer === 'number' ? { status: answer, headers: {} } : answer
    if (status >= 200 && status < 300) taken.add(received.id)
    response.writeHead(status, headers).end()
  })
  const url = await listen(server)
  const receiver: TestReceiver = {
    url: `${url}/hook`,
    received: [],
    mostAtOnce: 0,
    together: [],
    answer: () => 200,
    async restart() {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
      here.clear()
      await once(server.listen(Number(new URL(url).port), '127.0.0.1'), 'listening')
    },
    waitFor: (changes) => waitUntil(() => taken.size >= changes, `${changes} changes arrive`),
    async answerOther() {
      await (await fetch(receiver.url)).text()
    },
    taken: () => [...taken],
  }
  return receiver
}

/** Verifies a request as a receiver would. Throws if it is not signed with this secret. */
export function verify({ body, headers }: Received, secret: string): void {
  new Webhook(secret).verify(body, headers as Record<string, string>)
}
