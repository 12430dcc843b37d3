import { overloaded } from '../contract/errors.ts'

/** What one token may have: tasks that run at once, tasks in all, and how long one may wait. */
interface TurnLimits {
  readonly atOnce: number
  readonly maxTasks?: number
  readonly maxWaitMs?: number
}

export type TokenTurns = <Value>(token: string, run: () => Promise<Value>) => Promise<Value>

/** The tasks of one token. */
interface Queue {
  running: number
  readonly waiting: (() => void)[]
}

/**
 * Builds a function that runs a few tasks of each token at a time, in the order of arrival. So a
 * token with many of them holds up nobody else. Those beyond its limits are refused.
 */
export function buildTokenTurns(limits: TurnLimits): TokenTurns {
  const { atOnce, maxTasks = Infinity, maxWaitMs = Infinity } = limits
  const queues = new Map<string, Queue>()

  return async (token, run) => {
    const queue = queues.get(token) ?? { running: 0, waiting: [] }
    if (queue.running + queue.waiting.length === maxTasks) throw overloaded('read_queue')
    queues.set(token, queue)
    const arrivedAt = performance.now()
    if (queue.running < atOnce) queue.running++
    else await new Promise<void>((resolve) => queue.waiting.push(resolve))
    try {
      if (performance.now() - arrivedAt > maxWaitMs) throw overloaded('read_queue')
      return await run()
    } finally {
      // The next one takes the place of this one.
      const next = queue.waiting.shift()
      if (next !== undefined) next()
      else if (--queue.running === 0) queues.delete(token)
    }
  }
}
