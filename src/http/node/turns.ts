import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import { nextTick } from 'node:process'

/** How long requests are begun in one turn of the event loop. The rest waits for the next one. */
const turnMs = 2
/** How many requests are begun before the work that they have left to promises is done. */
const unfinishedInARow = 8
/** How many health checks a turn begins before all other requests. */
const healthPerTurn = 16
/** While connections come in, one in a turn, only every eighth turn begins requests. */
const acceptedInARow = 8

/** How often requests are checked that wait because their token has too many unread answers. */
const heldMs = 10

/**
 * Builds the queue of the requests that are ready to be run, by the key of `toKey`: one of each key
 * in turn, those without a key first. Node accepts one connection in a turn of the event loop, so a
 * turn must be short, or new ones would starve. Returns the function that adds a request.
 */
export function buildTurns(
  server: Server,
  toKey: (request: IncomingMessage) => string | undefined,
  mustRead: (key: string) => boolean,
  begin: (response: ServerResponse) => void,
): (response: ServerResponse) => void {
  const queues = new Map<string, ServerResponse[]>()
  const health: ServerResponse[] = []
  let isScheduled = false
  let hasAccepted = false
  let accepted = 0
  let turnEndsAt = 0
  let held: NodeJS.Timeout | undefined

  server.on('connection', () => {
    hasAccepted = true
  })

  function schedule(): void {
    if (isScheduled) return
    isScheduled = true
    setImmediate(beginTurn)
  }

  function release(): void {
    held = undefined
    schedule()
  }

  function beginTurn(): void {
    isScheduled = false
    if (health.length > 0) for (const response of health.splice(0, healthPerTurn)) begin(response)
    accepted = hasAccepted ? accepted + 1 : 0
    hasAccepted = false
    if (accepted % acceptedInARow > 0) schedule()
    else {
      turnEndsAt = performance.now() + turnMs
      continueTurn()
    }
  }

  function continueTurn(): void {
    let unfinished = 0
    while (queues.size > 0 && performance.now() < turnEndsAt) {
      const response = takeNext()
      if (response === undefined) {
        if (held === undefined) held = setTimeout(release, heldMs).unref()
        return
      }
      begin(response)
      // They have left work to promises. A tick that a microtask schedules comes after all of it.
      if (!response.writableEnded && ++unfinished === unfinishedInARow) {
        queueMicrotask(() => nextTick(continueTurn))
        return
      }
    }
    if (queues.size + health.length > 0) schedule()
  }

  /** Takes the first request of the first key, and moves that key to the end. */
  function takeNext(): ServerResponse | undefined {
    for (const [key, responses] of queues) {
      if (mustRead(key)) continue
      const response = responses.shift()
      if (responses.length === 0 || queues.size > 1) queues.delete(key)
      if (responses.length > 0) queues.set(key, responses)
      return response
    }
    return undefined
  }

  return (response) => {
    const key = toKey(response.req)
    const responses = key === undefined ? health : queues.get(key)
    if (responses !== undefined) responses.push(response)
    else if (key !== undefined) queues.set(key, [response])
    schedule()
  }
}
