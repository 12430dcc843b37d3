import type { Caller } from '../caller.ts'
import { callerLeft, overloaded, unreachable } from '../failures.ts'
import { RowsMissing } from './failures.ts'
import type { Sql } from './pools.ts'
import { timedOut } from './timeout.ts'

/** A few connections for one kind of statements, with a bounded queue. */
export interface Lane {
  /** Runs `statements` on one of the connections. The time includes the wait for it. */
  run<Value>(statements: Statements<Value>, timeoutMs: number, caller?: Caller): Promise<Value>
  /** Refuses tasks that wait and new ones. Statements under way go on. */
  close(): void
}

type Statements<Value> = (sql: Sql) => Promise<Value>

/** One connection of a lane. */
export interface LaneConnection {
  readonly sql: Sql
  /** Asks the server to end the statement under way. */
  cancel(): Promise<void>
  /** Closes the connection at once. */
  close(): Promise<void>
}

export interface LaneOptions {
  readonly open: () => Promise<LaneConnection>
  readonly connections: number
  /** How many tasks may be sent on one connection at a time. Tasks with transactions need 1. */
  readonly depth: number
  readonly queueItems: number
  /** What happens to a statement that takes too long. A write must never be cancelled. */
  readonly whenLate: 'cancel' | 'go on'
}

interface Task {
  readonly statements: Statements<unknown>
  readonly settle: { resolve(value: never): void; reject(reason: unknown): void }
  readonly timeoutMs: number
  readonly endsAt: number
  caller: Caller | undefined
  /** When it was sent. */
  sentAt: number
  /** Its caller has left, or got the answer that it was late. */
  isUnwanted: boolean
}

/** One connection with its tasks, the oldest first. */
interface Track {
  readonly connection: LaneConnection
  readonly tasks: Task[]
}

/** How often tasks are checked for their time and their callers. */
const checkMs = 50
/** After a task that has been under way for this long, none is sent: it would have to wait. */
const slowMs = 10

/**
 * Builds a lane. Its connections are opened when they are needed, and kept until a read on one of
 * them is given up: the rest of its answer would meet the next read there.
 */
export function buildLane(options: LaneOptions): Lane {
  const { open, connections, depth, queueItems, whenLate } = options
  let tracks: Track[] = []
  // No set: V8 links its outgrown tables, and the garbage collector would keep what they hold.
  let queue: Task[] = []
  let openCount = 0
  let isClosed = false
  let checkTimer: NodeJS.Timeout | undefined

  function run<Value>(statements: Statements<Value>, timeoutMs: number, caller?: Caller) {
    return new Promise<Value>((resolve, reject) => {
      if (isClosed) throw unreachable()
      if (queue.length >= queueItems) throw overloaded('read_queue')
      const endsAt = performance.now() + timeoutMs
      const settle = { resolve, reject }
      queue.push({ statements, settle, timeoutMs, endsAt, caller, sentAt: 0, isUnwanted: false })
      checkTimer ??= setInterval(check, Math.min(checkMs, timeoutMs)).unref()
      startNext()
    })
  }

  /** Sends tasks while a connection can take one, and opens another if all have something to do. */
  function startNext(): void {
    const now = performance.now()
    let isBusy = false
    for (let task = queue[0]; task !== undefined; task = queue[0]) {
      const track = findTrack(now)
      isBusy = track === undefined || track.tasks.length > 0
      if (track === undefined) break
      queue.shift()
      void start(track, task, now)
    }
    if (isBusy && !isClosed && openCount < connections) void openAnother()
  }

  /** The connection with the fewest tasks, of those that can take another. */
  function findTrack(now: number): Track | undefined {
    // While connections are opened, each takes one task: the next may be idle.
    const maxTasks = tracks.length < connections ? 1 : depth
    let found: Track | undefined
    for (const track of tracks) {
      const { tasks } = track
      const [oldest] = tasks
      if (tasks.length >= maxTasks) continue
      if (oldest !== undefined && now - oldest.sentAt > slowMs) continue
      if (found === undefined || tasks.length < found.tasks.length) found = track
    }
    return found
  }

  async function start(track: Track, task: Task, now: number): Promise<void> {
    const { connection, tasks } = track
    const isAbandoned = () => !tracks.includes(track)
    task.sentAt = now
    tasks.push(task)
    try {
      const value = await task.statements(connection.sql)
      if (isAbandoned()) return
      task.settle.resolve(value as never)
      // The driver holds on to old queries for a while: they must not hold requests.
      task.caller = undefined
    } catch (error) {
      if (isAbandoned()) return
      if (error instanceof RowsMissing && whenLate === 'cancel') return void abandon(track)
      task.settle.reject(error)
    }
    tasks.splice(tasks.indexOf(task), 1)
    startNext()
  }

  async function openAnother(): Promise<void> {
    openCount++
    try {
      tracks.push({ connection: await open(), tasks: [] })
      startNext()
    } catch (error) {
      openCount--
      if (openCount === 0) refuse(error)
    }
  }

  /** Ends tasks that are late or whose callers have left. */
  function check(): void {
    const now = performance.now()
    queue = queue.filter((task) => {
      const reason = findReason(task, now)
      // A statement that was sent may have been executed; one that was not cannot have been.
      if (reason !== undefined) task.settle.reject(reason === 'late' ? unreachable() : callerLeft())
      return reason === undefined
    })
    for (const track of tracks) endUnwanted(track, now)
    if (queue.length > 0 || tracks.some(({ tasks }) => tasks.length > 0)) return
    clearInterval(checkTimer)
    checkTimer = undefined
  }

  function endUnwanted(track: Track, now: number): void {
    for (const task of track.tasks) {
      const reason = task.isUnwanted ? undefined : findReason(task, now)
      if (reason === undefined) continue
      task.isUnwanted = true
      task.settle.reject(reason === 'late' ? timedOut(task.timeoutMs) : callerLeft())
    }
    // The server executes the oldest. The others are given up when it is their turn.
    if (whenLate === 'cancel' && track.tasks[0]?.isUnwanted) void abandon(track)
  }

  /** Gives a connection up for good. The reads behind the one that was given up are sent again. */
  async function abandon(track: Track): Promise<void> {
    tracks = tracks.filter((other) => other !== track)
    queue = [...track.tasks.filter(({ isUnwanted }) => !isUnwanted), ...queue]
    if (isClosed) refuse(unreachable())
    startNext()
    // The server notices a closed connection only when it writes, and a pooler forgets the request.
    await track.connection.cancel().catch(() => {})
    await track.connection.close().catch(() => {})
    openCount--
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

function findReason({ endsAt, caller }: Task, now: number): 'late' | 'left' | undefined {
  if (now >= endsAt) return 'late'
  return caller?.destroyed ? 'left' : undefined
}
