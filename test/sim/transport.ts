/**
 * Stands in for `src/webhooks/transport.ts`: requests to the simulated receivers. A request that
 * is given up before it arrives does not arrive.
 */
import type { Outcome } from '../../src/webhooks/schedule.ts'
import type { Transport, TransportOptions } from '../../src/webhooks/transport.ts'
import { server } from './postgres.ts'
import { type Actor, world } from './world.ts'

export type Answer = 'taken' | 'taken, but the answer is lost' | 'refused' | 'gone' | 'late'

/** How the receivers answer. */
export interface Manners {
  readonly actor: Actor
  answer(): Answer
  delayMs(): number
}

let manners: Manners | undefined

export function setManners(chosen: Manners): void {
  manners = chosen
}

const results: Record<Answer, Pick<Outcome, 'status' | 'error'>> = {
  taken: { status: 200, error: undefined },
  'taken, but the answer is lost': { status: undefined, error: 'the connection was closed' },
  refused: { status: 500, error: 'answered 500' },
  gone: { status: 410, error: 'answered 410' },
  late: { status: undefined, error: 'no answer' },
}

export function openTransport({ url, timeoutMs }: TransportOptions): Transport {
  const { plan, actor, between, pause } = world()
  const receiver = new URL(url).hostname
  const process = actor()
  const sender = server().truth.addSender(receiver)
  const inFlight = new Set<() => void>()
  let isClosed = false

  return {
    async post({ headers, mayWrite }) {
      const brokenOff = { status: undefined, error: 'broken off', retryAfterMs: 0 }
      const { answer, delayMs, actor: other } = manners as Manners
      await pause(between(0, 3))
      if (isClosed || !mayWrite()) return brokenOff
      const position = String(headers['webhook-id'])
      return new Promise<Outcome>((resolve) => {
        const finish = (outcome: Outcome) => {
          if (!inFlight.delete(breakOff)) return
          arrival.run = undefined
          clearTimeout(timer)
          resolve(outcome)
        }
        const breakOff = () => finish(brokenOff)
        const arrival = plan(between(0, 5), 'a delivery arrives', arrive, other)
        const timer = setTimeout(() => finish({ ...results.late, retryAfterMs: 0 }), timeoutMs)
        inFlight.add(breakOff)

        function arrive(): void {
          if (process.state === 'dead') return
          sender.arrive(position)
          const how = answer()
          if (how.startsWith('taken')) sender.take(position)
          const outcome = { ...results[how], retryAfterMs: 0 }
          if (how === 'late') return
          plan(delayMs(), 'a receiver answers', () => finish(outcome), process)
        }
      })
    },
    close() {
      isClosed = true
      for (const breakOff of inFlight) breakOff()
    },
  }
}
