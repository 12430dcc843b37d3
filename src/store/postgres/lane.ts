import { overloaded } from '../../contract/errors.ts'
import { unreachable } from '../failures.ts'
import type { Connection } from './connection.ts'
import { timedOut } from './failures.ts'
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
   * What happens to a connection on which a task is late. A connection for reads is destroyed, and
   * the reads behind the late one are sent again. A connection for writes waits for the answer: a
   * write is never cancelled.
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

/** A connection with its tasks in flight, the oldest first. */
interface PooledConnection {
  readonly connection: Connection
  readonly tasks: Task[]
}

const queueItems = 1_000
/** How often the deadlines of tasks are checked. */
const checkMs = 50
/** No task is sent behind one that has been in flight for this long. */
const slowMs = 10

/** Runs each statement as a task of its own, so that no connection waits between two of them. */
export function toQuery(lane: Lane, timeoutMs: number): Query {
  const endsAt = performance.now() + timeoutMs
  return (parts, ...values) => lane.run((sql) => sql(parts, ...values), endsAt - performance.now())
}

/** Builds a lane. Connections are opened on demand. */
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

  /** Sends tasks while a connection can take one, and opens another if all are busy. */
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

  /** The connection with the fewest tasks among those that can take another. */
  function findLeastBusy(now: number): PooledConnection | undefined {
    // Until all connections are open, each takes one task: the next one may be idle.
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

  /** Rejects late tasks. */
  function check(): void {
    const now = performance.now()
    const isLate = ({ endsAt }: Task) => now >= endsAt
    for (const { settle } of queue.filter(isLate)) settle.reject(unreachable())
    queue = queue.filter((task) => !isLate(task))
    for (const pooled of pool.filter(({ tasks }) => tasks.some(isLate))) {
      // These were sent and may have been executed; those in the queue were not.
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
