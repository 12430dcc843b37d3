import { overloaded } from '../contract/errors.ts'

/**
 * Builds a function that runs the tasks of each token one at a time, in the order of arrival. So a
 * token with many of them holds up nobody else. More than `maxTasks` of a token are refused.
 */
export function buildTokenTurns(maxTasks: number) {
  const queues = new Map<string, { last?: Promise<unknown>; tasks: number }>()

  return async <Value>(token: string, run: () => Promise<Value>): Promise<Value> => {
    const queue = queues.get(token) ?? { tasks: 0 }
    if (queue.tasks === maxTasks) throw overloaded('read_queue')
    queues.set(token, queue)
    queue.tasks++
    const task = queue.last === undefined ? run() : queue.last.then(run, run)
    queue.last = task
    try {
      return await task
    } finally {
      if (--queue.tasks === 0) queues.delete(token)
    }
  }
}
