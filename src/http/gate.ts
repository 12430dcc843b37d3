import type { IncomingMessage, ServerResponse } from 'node:http'
import { nextTick } from 'node:process'
import { limits } from '../contract/limits.ts'
import type { TokenVerifier } from '../tokens/verify.ts'
import { readBearer } from './read-request.ts'

/*
 * The gate: every request of any method passes through it before it begins.
 *
 * - A write of a verified token begins at once if nothing else waits and this turn of the event
 *   loop has begun requests for less than `limits.turnMs`. Every other request waits for the end of
 *   the turn at least. Node accepts one connection in a turn, and beyond 1,024 ready sockets libuv
 *   polls again within a turn, so a turn has to be short.
 * - Callers take turns: one request of each, in order. A caller is a verified token; all requests
 *   without one, or with a token that is not known yet, are one caller. The text of a header proves
 *   nothing, so it is not a caller.
 * - A caller has at most `limits.underWay` begun and not yet answered. The rest of its requests
 *   wait here and not in the queues of the store, which are served by arrival.
 * - Health checks come first.
 *
 * One request of each connection can wait here, so the gate holds at most as many requests as there
 * are connections. The router refuses one that has waited for longer than `limits.gateWaitMs`.
 */

/** After beginning this many requests, the gate lets the promises that they left run. */
const unfinishedInARow = 8
/** How many health checks a turn begins before all other requests. */
const healthPerTurn = 16
/** While connections come in, one in a turn, requests begin only in every eighth turn. */
const acceptingTurnsInARow = 8

/** Begins a request. `leave` gives its place back; only the first call counts. */
type Begin = (response: ServerResponse, leave: () => void, waitedMs: number) => void

interface Waiting {
  readonly response: ServerResponse
  readonly since: number
}

interface Caller {
  readonly id: string
  readonly waiting: Waiting[]
  /** A sum of weights. */
  underWay: number
}

/** Health checks take no place of a caller, which they could leave. */
const leaveNothing = () => {}

/** Builds the gate. The tokens tell which ones were verified before. */
export function buildGate(tokens: Pick<TokenVerifier, 'findId'>, begin: Begin) {
  const callers = new Map<string, Caller>()
  /** The callers that have requests waiting and may begin one, in the order of their turns. */
  const ready = new Set<Caller>()
  const health: ServerResponse[] = []
  let isScheduled = false
  /** Whether a connection has come in since the last turn, and in how many turns in a row. */
  let hasAccepted = false
  let acceptingTurns = 0
  /** Until when this turn begins requests; 0 until it has begun one. */
  let turnEndsAt = 0

  /** The id of the verified token; empty for all without one, undefined for health checks. */
  function toCallerId({ url = '', headers }: IncomingMessage): string | undefined {
    if (/^\/(?:healthz|readyz)(?:\?|$)/.test(url)) return undefined
    return tokens.findId(readBearer(headers)) ?? ''
  }

  /** Tells that a connection has come in. */
  function noteConnection(): void {
    hasAccepted = true
    schedule()
  }

  function schedule(): void {
    if (isScheduled) return
    isScheduled = true
    setImmediate(beginTurn)
  }

  function beginTurn(): void {
    isScheduled = false
    if (health.length > 0) {
      for (const response of health.splice(0, healthPerTurn)) begin(response, leaveNothing, 0)
    }
    acceptingTurns = hasAccepted ? acceptingTurns + 1 : 0
    hasAccepted = false
    turnEndsAt = performance.now() + limits.turnMs
    if (acceptingTurns % acceptingTurnsInARow > 0) schedule()
    else continueTurn()
  }

  /** Begins requests that have waited: one at least, so that each turn makes progress. */
  function continueTurn(): void {
    let unfinished = 0
    let now = performance.now()
    while (ready.size > 0) {
      const response = beginNext(now)
      now = performance.now()
      if (now >= turnEndsAt) break
      // A tick that a microtask schedules runs after the promises that these requests have left.
      if (!response.writableEnded && ++unfinished === unfinishedInARow) {
        queueMicrotask(() => nextTick(continueTurn))
        return
      }
    }
    if (ready.size + health.length > 0) schedule()
    else turnEndsAt = 0
  }

  /** Begins the first request of the first caller, and moves that caller to the end. */
  function beginNext(now: number): ServerResponse {
    const [caller] = ready as unknown as [Caller]
    const { response, since } = caller.waiting.shift() as Waiting
    // A lone caller is at the end already.
    if (ready.size > 1) ready.delete(caller)
    enter(caller, response, now - since)
    if (mayBegin(caller)) ready.add(caller)
    else ready.delete(caller)
    return response
  }

  function mayBegin({ waiting, underWay }: Caller): boolean {
    return waiting.length > 0 && underWay < limits.underWay
  }

  function enter(caller: Caller, response: ServerResponse, waitedMs: number): void {
    const weight = toWeight(response.req)
    let isInside = true
    caller.underWay += weight
    begin(
      response,
      () => {
        if (!isInside) return
        isInside = false
        caller.underWay -= weight
        if (mayBegin(caller)) {
          ready.add(caller)
          schedule()
        } else if (caller.underWay + caller.waiting.length === 0) callers.delete(caller.id)
      },
      waitedMs,
    )
  }

  function findCaller(id: string): Caller {
    const known = callers.get(id)
    if (known !== undefined) return known
    const caller = { id, waiting: [], underWay: 0 }
    callers.set(id, caller)
    return caller
  }

  function add(response: ServerResponse): void {
    const id = toCallerId(response.req)
    if (id === undefined) health.push(response)
    else {
      const caller = findCaller(id)
      const now = performance.now()
      // The time of a turn begins with its first request.
      if (turnEndsAt === 0) turnEndsAt = now + limits.turnMs
      const { method } = response.req
      // A write is cheap to begin, and expensive to hold back: its body follows at once. Reads are
      // cheaper together.
      const isWrite = method !== 'GET' && method !== 'HEAD'
      const isFirst = ready.size === 0 && acceptingTurns === 0 && caller.underWay < limits.underWay
      if (isWrite && isFirst && id !== '' && now < turnEndsAt) enter(caller, response, 0)
      else {
        caller.waiting.push({ response, since: now })
        if (mayBegin(caller)) ready.add(caller)
      }
    }
    // Also ends this turn, when the event loop has come around.
    schedule()
  }

  return { add, noteConnection }
}

/**
 * How much of `limits.underWay` a request takes. A path can be spelled in many ways, so every read
 * weighs as much as a page of plants, unless its path surely names one plant or the events.
 */
function toWeight({ method, url = '' }: IncomingMessage): number {
  const isRead = method === 'GET' || method === 'HEAD'
  return isRead && !/^\/(?:plants\/|events)/.test(url) ? limits.pageWeight : 1
}
