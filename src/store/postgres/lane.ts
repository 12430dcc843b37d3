import { overloaded } from '../../contract/errors.ts'
import { unreachable } from '../failures.ts'
import type { Connection } from './connection.ts'
import { timedOut } from './failures.ts'
import type { Sql } from './sql.ts'

/** A few connections for one kind of statements, with a bounded queue. */
export interface Lane {
  /** Runs `statements` on one of the connections. The time includes the wait for it. */
  run<Value>(statements: Statements<Value>, timeoutMs: number): Promise<Value>
  /** Refuses tasks that wait and new ones. Statements under way go on. */
  close(): void
}

type Statements<Value> = (sql: Sql) => Promise<Value>

export interface LaneOptions {
  readonly open: () => Promise<Connection>
  readonly connections: number
  /** How many tasks may be sent on one connection at a time. Tasks with transactions need 1. */
  readonly depth: number
  /**
   * What happens to a connection on which a task is late. One for reads is destroyed, and reads
   * that were sent behind the late one are sent again. One for writes is left alone until the
   * answer comes: a write must never be cancelled.
   */
  readonly whenLate: 'destroy' | 'wait'
}

interface Task {
  readonly statements: Statements<unknown>
  readonly settle: { resolve(value: never): void; reject(reason: unknown): void }
  readonly endsAt: number
  /** When it was sent. */
  sentAt: number
}

/** One connection with its tasks, the oldest first. */
interface PooledConnection {
  readonly connection: Connection
  readonly tasks: Task[]
}

const queueItems = 1_000
/** How often tasks are checked for their time. */
const checkMs = 50
/** After a task that has been under way for this long, none is sent: it would have to wait. */
const slowMs = 10

/** Builds a lane. Its connections are opened when they are needed. */
export function buildLane({ open, connections, depth, whenLate }: LaneOptions): Lane {
  let pool: PooledConnection[] = []
  let queue: Task[] = []
  let openCount = 0
  let isClosed = false
  let checkTimer: NodeJS.Timeout | undefined

  function run<Value>(statements: Statements<Value>, timeoutMs: number) {
    return new Promise<Value>((resolve, reject) => {
      if (isClosed) throw unreachable()
      if (queue.length >= queueItems) throw overloaded('read_queue')
      const endsAt = performance.now() + timeoutMs
      queue.push({ statements, settle: { resolve, reject }, endsAt, sentAt: 0 })
      checkTimer ??= setInterval(check, checkMs).unref()
      startNext()
    })
  }

  /** Sends tasks while a connection can take one, and opens another if all have something to do. */
  function startNext(): void {
    const now = performance.now()
    let isBusy = false
    for (let task = queue[0]; task !== undefined; task = queue[0]) {
      const pooled = findLeastBusy(now)
      isBusy = pooled === undefined || pooled.tasks.length > 0
      if (pooled === undefined) break
      queue.shift()
      void start(pooled, task, now)
    }
    if (isBusy && !isClosed && openCount < connections) void openAnother()
  }

  /** The connection with the fewest tasks, of those that can take another. */
  function findLeastBusy(now: number): PooledConnection | undefined {
    // While connections are opened, each takes one task: the next may be idle.
    const maxTasks = pool.length < connections ? 1 : depth
    let found: PooledConnection | undefined
    for (const pooled of pool) {
      const { tasks } = pooled
      const [oldest] = tasks
      if (tasks.length >= maxTasks) continue
      if (oldest !== undefined && now - oldest.sentAt > slowMs) continue
      if (found === undefined || tasks.length < found.tasks.length) found = pooled
    }
    return found
  }

  async function start(
    { connection, tasks }: PooledConnection,
    task: Task,
    now: number,
  ): Promise<void> {
    task.sentAt = now
    tasks.push(task)
    try {
      const value = await task.statements(connection.sql)
      if (tasks.includes(task)) task.settle.resolve(value as never)
    } catch (error) {
      if (tasks.includes(task)) task.settle.reject(error)
    }
    const index = tasks.indexOf(task)
    if (index === -1) return
    tasks.splice(index, 1)
    startNext()
  }

  async function openAnother(): Promise<void> {
    openCount++
    try {
      pool.push({ connection: await open(), tasks: [] })
      startNext()
    } catch (error) {
      openCount--
      if (openCount === 0) refuse(unreachable(error))
    }
  }

  /** Gives late tasks up. */
  function check(): void {
    const now = performance.now()
    const isLate = ({ endsAt }: Task) => now >= endsAt
    for (const { settle } of queue.filter(isLate)) settle.reject(unreachable())
    queue = queue.filter((task) => !isLate(task))
    for (const pooled of pool.filter(({ tasks }) => tasks.some(isLate))) {
      // A statement that was sent may have been executed; one that was not cannot have been.
      for (const { settle } of pooled.tasks.filter(isLate)) settle.reject(timedOut())
      if (whenLate === 'destroy') abandon(pooled, isLate)
    }
    if (queue.length > 0 || pool.some(({ tasks }) => tasks.length > 0)) return
    clearInterval(checkTimer)
    checkTimer = undefined
  }

  function abandon(pooled: PooledConnection, isLate: (task: Task) => boolean): void {
    pool = pool.filter((other) => other !== pooled)
    openCount--
    queue = [...pooled.tasks.splice(0).filter((task) => !isLate(task)), ...queue]
    pooled.connection.destroy()
    if (isClosed) refuse(unreachable())
    startNext()
  }

  function refuse(reason: unknown): void {
    for (const task of queue) task.settle.reject(reason)
    queue = []
  }

  return {
    run,
    close() {
      isClosed = true
      refuse(unreachable())
    },
  }
}
