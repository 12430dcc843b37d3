import { overloaded, unreachable } from '../failures.ts'
import type { Sql } from './pools.ts'
import { timedOut } from './timeout.ts'

/** A few connections for one kind of statements, with a bounded queue. */
export interface Lane {
  /** Lends a connection to `statements`, once one is idle. The time includes the wait for it. */
  run<Value>(statements: (sql: Sql) => Promise<Value>, timeoutMs: number): Promise<Value>
  /** Refuses tasks that wait and new ones. Statements under way go on. */
  close(): void
}

/** One connection of a lane. */
export interface LaneConnection {
  readonly sql: Sql
  /** Asks the server to end the statement under way. */
  cancel(): Promise<void>
}

export interface LaneOptions {
  readonly open: () => Promise<LaneConnection>
  readonly connections: number
  readonly queueItems: number
  /** What happens to a statement that takes too long. A write must never be cancelled. */
  readonly whenLate: 'cancel' | 'go on'
}

interface Task {
  start(connection: LaneConnection): Promise<void>
  reject(reason: unknown): void
}

/** Builds a lane. Its connections are opened when they are needed, and kept. */
export function buildLane({ open, connections, queueItems, whenLate }: LaneOptions): Lane {
  const idle: LaneConnection[] = []
  const queue = new Set<Task>()
  let openCount = 0
  let isClosed = false

  function run<Value>(statements: (sql: Sql) => Promise<Value>, timeoutMs: number): Promise<Value> {
    if (isClosed) return Promise.reject(unreachable())
    if (queue.size >= queueItems) return Promise.reject(overloaded('read_queue'))
    const { promise, resolve, reject } = Promise.withResolvers<Value>()
    let connection: LaneConnection | undefined
    let cancelled: Promise<void> | undefined
    const timer = setTimeout(() => {
      queue.delete(task)
      // A statement that was sent may have been executed; one that was not cannot have been.
      reject(connection === undefined ? unreachable() : timedOut(timeoutMs))
      if (whenLate === 'cancel') cancelled = connection?.cancel().catch(() => {})
    }, timeoutMs)
    const task: Task = {
      reject(reason) {
        clearTimeout(timer)
        reject(reason)
      },
      async start(free) {
        connection = free
        try {
          resolve(await statements(free.sql))
        } catch (error) {
          reject(error)
        }
        clearTimeout(timer)
        // A cancel request that is still on its way would hit the next statement.
        await cancelled
        idle.push(free)
        startNext()
      },
    }
    queue.add(task)
    startNext()
    return promise
  }

  /** Starts a task on each idle connection, and opens another connection while tasks are left. */
  function startNext(): void {
    for (const task of queue) {
      const connection = idle.pop()
      if (connection === undefined) break
      queue.delete(task)
      void task.start(connection)
    }
    if (queue.size > 0 && openCount < connections) void openAnother()
  }

  async function openAnother(): Promise<void> {
    openCount++
    try {
      idle.push(await open())
      startNext()
    } catch (error) {
      openCount--
      if (openCount === 0) refuse(error)
    }
  }

  function refuse(reason: unknown): void {
    for (const task of queue) task.reject(reason)
    queue.clear()
  }

  return {
    run,
    close() {
      isClosed = true
      refuse(unreachable())
    },
  }
}
