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

export type TestReceiver = Awaited<ReturnType<typeof openTestReceiver>>

/** Starts a receiver on a free port. It is closed with the test. */
export async function openTestReceiver() {
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
  const url = `${await listen(server)}/hook`
  const receiver = {
    url,
    received: [] as Received[],
    /** The most requests that were here at the same time. */
    mostAtOnce: 0,
    /** Plants of which two changes were here at the same time. */
    together: [] as string[],
    /** How the next requests are answered. */
    answer: (_received: Received): TestAnswer | Promise<TestAnswer> => 200,
    /** Breaks off every connection, refuses new ones for a moment, and comes back. */
    async restart(): Promise<void> {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
      here.clear()
      await once(server.listen(Number(new URL(url).port), '127.0.0.1'), 'listening')
    },
    /** Resolves when this many different changes were answered with success. */
    waitFor: (changes: number) =>
      waitUntil(() => taken.size >= changes, `${changes} changes arrive`),
    /** Answers a request of the test itself, after all that were sent before. */
    async answerOther(): Promise<void> {
      await (await fetch(url)).text()
    },
    /** The ids of changes that were answered with success, each once, in order. */
    taken: () => [...taken],
  }
  return receiver
}

/** Verifies a request as a receiver would. Throws if it is not signed with this secret. */
export function verify({ body, headers }: Received, secret: string): void {
  new Webhook(secret).verify(body, headers as Record<string, string>)
}
