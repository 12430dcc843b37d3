import { get, type IncomingMessage } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'
import { releaseAfterTest } from '../../support/release.ts'
import { waitUntil } from '../../support/wait.ts'
import { parseExactly } from './client.ts'

/** A change as the feed tells it. */
export interface FeedEvent {
  readonly position: string
  readonly type: 'plant.created' | 'plant.replaced' | 'plant.deleted'
  readonly plant: { readonly id: bigint; readonly name: string }
}

/** A client that follows the feed over every restart of its service. */
export interface FeedReader {
  readonly events: readonly FeedEvent[]
  /** Resolves when the change at this position has come. */
  waitFor(position: string | undefined): Promise<void>
}

const pauseMs = 20

/** Follows the feed of whichever service there is, and comes back after the last event. */
export function followFeed(toUrl: () => string, token: string): FeedReader {
  const events: FeedEvent[] = []
  let last: string | undefined
  let isStopped = false
  let current: { destroy(): void } | undefined

  function take(block: string): void {
    const id = /^id: (.*)$/m.exec(block)?.[1]
    const data = /^data: (.*)$/m.exec(block)?.[1]
    if (id !== undefined) last = id
    if (data !== undefined) events.push(parseExactly<FeedEvent>(data))
  }

  function readOnce(): Promise<void> {
    const headers = {
      Authorization: `Bearer ${token}`,
      Accept: 'text/event-stream',
      ...(last !== undefined && { 'Last-Event-ID': last }),
    }
    return new Promise((resolve) => {
      const request = get(`${toUrl()}/events`, { agent: false, headers })
      current = request
      request.on('error', () => resolve())
      request.on('response', (response: IncomingMessage) => {
        let rest = ''
        response.on('error', () => {})
        response.setEncoding('utf8').on('data', (text: string) => {
          const blocks = (rest + text).split('\n\n')
          rest = blocks.pop() ?? ''
          // An event that was broken off is not complete.
          if (response.statusCode === 200) for (const block of blocks) take(block)
        })
        response.on('close', resolve)
      })
    })
  }

  async function follow(): Promise<void> {
    while (!isStopped) {
      await readOnce()
      await sleep(pauseMs)
    }
  }

  const following = follow()
  releaseAfterTest(async () => {
    isStopped = true
    current?.destroy()
    await following
  })
  return {
    events,
    waitFor: (position) =>
      waitUntil(() => events.at(-1)?.position === position, `the event at ${position} has come`),
  }
}
