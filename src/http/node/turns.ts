import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import { nextTick } from 'node:process'

/** How long requests are begun in one turn of the event loop. The rest waits for the next one. */
const turnMs = 2
/** How long requests are begun before the work that they leave to promises is done. */
const stretchMs = 0.5
/** How many health checks a turn begins before all other requests. */
const healthPerTurn = 16
/** How many connections are accepted, one in a turn, before requests get a turn as well. */
const acceptedInARow = 8

/**
 * The queue of the requests that are ready to be run, by key: one of each key in turn. Node accepts
 * one connection in a turn of the event loop, so a turn must be short, or new ones would starve.
 */
export interface Turns {
  add(response: ServerResponse): void
}

/**
 * Builds the queue. `toKey` tells who asks, by whom requests are served in turn; those without a
 * key come first.
 */
export function buildTurns(
  server: Server,
  toKey: (request: IncomingMessage) => string | undefined,
  begin: (response: ServerResponse) => void,
): Turns {
  const queues = new Map<string, ServerResponse[]>()
  const health: ServerResponse[] = []
  let isScheduled = false
  let hasAccepted = false
  let accepted = 0
  let turnEndsAt = 0

  server.on('connection', () => {
    hasAccepted = true
  })

  function schedule(): void {
    if (isScheduled) return
    isScheduled = true
    setImmediate(beginTurn)
  }

  function beginTurn(): void {
    isScheduled = false
    for (const response of health.splice(0, healthPerTurn)) begin(response)
    accepted = hasAccepted ? accepted + 1 : 0
    hasAccepted = false
    if (accepted % acceptedInARow > 0) schedule()
    else {
      turnEndsAt = performance.now() + turnMs
      goOn()
    }
  }

  function goOn(): void {
    const startedAt = performance.now()
    for (let now = startedAt; now < turnEndsAt && queues.size > 0; now = performance.now()) {
      // A tick that begins in a microtask comes after all other microtasks.
      if (now - startedAt > stretchMs) {
        queueMicrotask(() => nextTick(goOn))
        return
      }
      begin(takeNext())
    }
    if (queues.size + health.length > 0) schedule()
  }

  /** Takes the first request of the first key, which becomes the last one. */
  function takeNext(): ServerResponse {
    const [key, responses] = queues.entries().next().value as [string, ServerResponse[]]
    queues.delete(key)
    if (responses.length > 1) queues.set(key, responses)
    return responses.shift() as ServerResponse
  }

  return {
    add(response) {
      const key = toKey(response.req)
      const responses = key === undefined ? health : queues.get(key)
      if (responses !== undefined) responses.push(response)
      else if (key !== undefined) queues.set(key, [response])
      schedule()
    },
  }
}
