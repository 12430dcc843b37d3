import type { Address } from './address.ts'
import { isLoss } from './failures.ts'
import type { Host } from './hosts.ts'
import { buildLane, type Lane } from './lane.ts'
import { buildPools, type Pools, type Sql } from './pools.ts'
import { requirePrimary } from './primary.ts'
import { negotiate, type Terms } from './terms.ts'
import { withTimeout } from './timeout.ts'

export type { Sql } from './pools.ts'

export interface SessionOptions {
  readonly address: Address
  readonly at: Host
  /** Called once, when the server cannot be used any more. */
  readonly onLost: (reason: unknown) => void
}

/** Open connections to one server that was the primary when they were made. */
export interface Session extends Pick<Pools, 'openAlone' | 'warnings' | 'end'> {
  /** Each has one connection, already open: a statement that fails on it may have been executed. */
  readonly writers: readonly Sql[]
  /** Short reads: plants by their ids, tokens. */
  readonly lookUps: Lane
  /** Reads of many plants, apart from the others: a slow one delays no look-up. */
  readonly pages: Lane
  /** Small writes, beside those of plants. */
  readonly chores: Lane
  /** Whether it was lost or ended. */
  isOver(): boolean
}

export const writerCount = 2
export const lookUpConnections = 3
export const pageConnections = 6
/** Reads that are sent together save system calls and wake-ups on both sides. */
export const readDepth = 10
const queueItems = 1_000
const beatMs = 250
const beatTimeoutMs = 1_000

/** Opens a session, or throws why the server cannot be used. */
export function openSession(options: SessionOptions): Promise<Session> {
  const { address, at } = options
  return negotiate(address, at, (terms) => openOnTerms(terms, options))
}

async function openOnTerms(terms: Terms, options: SessionOptions): Promise<Session> {
  const onClosed = () => lose(new Error('a connection was closed'))
  const pools = buildPools({ ...options, terms, onClosed })
  const lane = { open: pools.open, queueItems }
  const read = { ...lane, depth: readDepth, whenLate: 'cancel' } as const
  const lookUps = buildLane({ ...read, connections: lookUpConnections })
  const pages = buildLane({ ...read, connections: pageConnections })
  const chores = buildLane({ ...lane, connections: 1, depth: 1, whenLate: 'go on' })
  let isOver = false
  let beatTimer: NodeJS.Timeout | undefined

  function stop(): void {
    isOver = true
    clearTimeout(beatTimer)
    for (const one of [lookUps, pages, chores]) one.close()
  }

  function lose(reason: unknown): void {
    if (isOver) return
    stop()
    options.onLost(reason)
  }

  async function beat(watcher: Sql): Promise<void> {
    try {
      await withTimeout(requirePrimary(watcher), beatTimeoutMs)
      if (!isOver) beatTimer = setTimeout(beat, beatMs, watcher).unref()
    } catch (error) {
      lose(error)
    }
  }

  function end(graceMs: number): Promise<void> {
    stop()
    return pools.end(graceMs)
  }

  try {
    const watcher = await pools.open()
    const opened = await Promise.all(Array.from({ length: writerCount }, pools.open))
    const writers = opened.map(({ sql }) => sql)
    beatTimer = setTimeout(beat, beatMs, watcher.sql).unref()
    const { openAlone, warnings } = pools
    return { writers, lookUps, pages, chores, openAlone, warnings, isOver: () => isOver, end }
  } catch (error) {
    await end(0)
    throw error
  }
}

/** The first session that opens, if two servers claim to be the primary. Others are ended. */
export async function takeFirst(attempts: readonly Promise<Session>[]): Promise<Session> {
  const session = await Promise.any(attempts)
  for (const attempt of attempts) {
    void attempt.then((other) => (other === session ? undefined : other.end(0))).catch(() => {})
  }
  return session
}

/**
 * Runs statements in one transaction, on a pool of one connection. The driver's own `begin` will
 * not do: when the connection is lost in the middle, it writes to the socket that is gone, and ends
 * the process.
 */
export async function inTransaction<Value>(sql: Sql, run: () => Promise<Value>): Promise<Value> {
  await sql`BEGIN`
  try {
    const value = await run()
    await sql`COMMIT`
    return value
  } catch (error) {
    // With the connection, the transaction is gone as well.
    if (!isLoss(error)) await sql`ROLLBACK`
    throw error
  }
}
