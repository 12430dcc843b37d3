import { overloaded } from '../../contract/errors.ts'
import { unreachable } from '../failures.ts'
import type { Connection } from './connection.ts'
import { Lost, withTimeout } from './failures.ts'
import type { Sql } from './sql.ts'

/** A connection, which may still be opening. */
interface Pooled {
  readonly connection: Promise<Connection>
  /** How many reads are in flight. */
  reads: number
  /** When its last read was answered, or when the first one was sent to an idle connection. */
  since: number
}

/** More reads in flight on a connection than this are refused. */
const mostReads = 200
/** A busy connection that has answered nothing for this long is slow: reads avoid it. */
const slowMs = 10
/** How long a lane does without a connection that could not be opened. */
const reopenMs = 1_000

/**
 * Builds a lane, which runs statements on one of a few connections for reads. They are pipelined,
 * which saves system calls and wake-ups on both sides. The timeout counts from the call.
 *
 * Connections are opened on demand. One on which a read is late is destroyed, and the reads behind
 * it are sent again.
 */
export function buildLane(open: () => Promise<Connection>, connections: number) {
  const pool = new Set<Pooled>()
  let mayOpenAt = 0

  /** The connection with the fewest reads; a new one if all are busy and it may be opened. */
  function choose(): Pooled {
    const now = performance.now()
    const rank = ({ reads, since }: Pooled) =>
      reads > 0 && now - since > slowMs ? mostReads + reads : reads
    const [best] = [...pool].sort((one, other) => rank(one) - rank(other))
    const mayOpen = pool.size < connections && now >= mayOpenAt
    return best === undefined || (best.reads > 0 && mayOpen) ? openAnother() : best
  }

  function openAnother(): Pooled {
    const opened: Pooled = { connection: open().catch(giveUp), reads: 0, since: 0 }
    function giveUp(error: unknown): never {
      pool.delete(opened)
      mayOpenAt = performance.now() + reopenMs
      throw unreachable(error)
    }
    pool.add(opened)
    return opened
  }

  return async <Value>(
    statements: (sql: Sql) => Promise<Value>,
    timeoutMs: number,
  ): Promise<Value> => {
    const endsAt = performance.now() + timeoutMs
    for (;;) {
      const sentAt = performance.now()
      // Sent with so little time, it could be late on a healthy connection.
      if (endsAt - sentAt < slowMs) throw new Lost('TIMEOUT')
      const pooled = choose()
      if (pooled.reads >= mostReads) throw overloaded('read_queue')
      if (pooled.reads++ === 0) pooled.since = sentAt
      let isAnswered = false
      const answer = pooled.connection
        .then(({ sql }) => statements(sql))
        .finally(() => {
          isAnswered = true
          pooled.reads--
          pooled.since = performance.now()
        })
      try {
        return await withTimeout(answer, endsAt - sentAt)
      } catch (error) {
        if (!isAnswered) {
          pool.delete(pooled)
          void pooled.connection.then(({ destroy }) => destroy()).catch(() => {})
        }
        // Another read was late, or the connection could not be opened and there are others.
        const mayRetry = !pool.has(pooled) && (error instanceof Lost || pool.size > 0)
        if (!isAnswered || !mayRetry) throw error
      }
    }
  }
}
