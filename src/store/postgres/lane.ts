import { overloaded } from '../../contract/errors.ts'
import { unreachable } from '../failures.ts'
import type { Connection } from './connection.ts'
import { withTimeout } from './failures.ts'
import type { Query, Sql } from './sql.ts'

/** A few connections for one kind of statements, with a bounded queue. */
export interface Lane {
  /** Runs `statements` on one of the connections. The timeout includes the wait in the queue. */
  run<Value>(statements: Statements<Value>, timeoutMs: number): Promise<Value>
  /** Refuses waiting and new tasks. Statements in flight continue. */
  close(): void
}

type Statements<Value> = (sql: Sql) => Promise<Value>

export interface LaneOptions {
  readonly open: () => Promise<Connection>
  readonly connections: number
  /** How many tasks may be in flight on one connection. Transactions need 1. */
  readonly depth: number
  /**
   * What happens to a connection on which a task is late. One for reads is destroyed, and the reads
   * behind the late one are sent again. One for writes waits for the answer: a write is never
   * cancelled.
   */
  readonly whenLate: 'destroy' | 'wait'
}

/** A connection with its tasks in flight, the oldest first. */
interface Pooled {
  readonly connection: Connection
  readonly tasks: Task[]
}

interface Task {
  readonly pooled: Pooled
  readonly sentAt: number
}

const queueItems = 1_000
/** No task is sent behind one that has been in flight for this long. */
const slowMs = 10

/** Runs each statement as a task of its own, so that no connection waits between two of them. */
export function toQuery(lane: Lane, timeoutMs: number): Query {
  const endsAt = performance.now() + timeoutMs
  return (parts, ...values) => lane.run((sql) => sql(parts, ...values), endsAt - performance.now())
}

/** Builds a lane. Connections are opened on demand. */
export function buildLane({ open, connections, depth, whenLate }: LaneOptions): Lane {
  const pool = new Set<Pooled>()
  /** In the order of their arrival. */
  const queue = new Set<PromiseWithResolvers<Task>>()
  let openCount = 0
  let isClosed = false

  async function run<Value>(statements: Statements<Value>, timeoutMs: number): Promise<Value> {
    const endsAt = performance.now() + timeoutMs
    for (;;) {
      if (isClosed) throw unreachable()
      const task = begin() ?? (await wait(endsAt - performance.now()))
      let isAnswered = false
      const answer = statements(task.pooled.connection.sql).finally(() => {
        isAnswered = true
        finish(task)
      })
      try {
        return await withTimeout(answer, endsAt - performance.now())
      } catch (error) {
        const isBehindLate = isAnswered && !pool.has(task.pooled)
        if (!isBehindLate) throw error
      } finally {
        if (!isAnswered && whenLate === 'destroy') discard(task.pooled)
      }
    }
  }

  /** Begins a task on the connection with the fewest, if one can take it. */
  function begin(): Task | undefined {
    const sentAt = performance.now()
    // Until all connections are open, each takes one task: the next one may be idle.
    const most = pool.size < connections ? 1 : depth
    let found: Pooled | undefined
    for (const pooled of pool) {
      const [oldest] = pooled.tasks
      const isBusy = oldest !== undefined && sentAt - oldest.sentAt > slowMs
      if (isBusy || pooled.tasks.length >= most) continue
      if (found === undefined || pooled.tasks.length < found.tasks.length) found = pooled
    }
    if (found === undefined) return undefined
    const task = { pooled: found, sentAt }
    found.tasks.push(task)
    return task
  }

  function finish(task: Task): void {
    const { tasks } = task.pooled
    tasks.splice(tasks.indexOf(task), 1)
    beginNext()
  }

  function beginNext(): void {
    for (const waiting of queue) {
      const task = begin()
      if (task === undefined) return
      queue.delete(waiting)
      waiting.resolve(task)
    }
  }

  function wait(timeoutMs: number): Promise<Task> {
    if (queue.size >= queueItems) throw overloaded('read_queue')
    if (openCount < connections) void openAnother()
    const waiting = Promise.withResolvers<Task>()
    queue.add(waiting)
    // What was not sent cannot have been executed.
    const timer = setTimeout(() => waiting.reject(unreachable()), timeoutMs)
    return waiting.promise.finally(() => {
      clearTimeout(timer)
      queue.delete(waiting)
    })
  }

  async function openAnother(): Promise<void> {
    openCount++
    try {
      pool.add({ connection: await open(), tasks: [] })
      beginNext()
    } catch (error) {
      openCount--
      if (openCount === 0) refuseAll(unreachable(error))
    }
  }

  function discard(pooled: Pooled): void {
    // Of two late tasks, the first has discarded it.
    if (!pool.delete(pooled)) return
    openCount--
    pooled.connection.destroy()
    if (queue.size > 0) void openAnother()
  }

  function refuseAll(reason: unknown): void {
    for (const waiting of queue) waiting.reject(reason)
  }

  return {
    run,
    close() {
      isClosed = true
      refuseAll(unreachable())
    },
  }
}
