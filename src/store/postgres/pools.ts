import postgres from 'postgres'
import type { Address } from './address.ts'
import { RowsMissing } from './failures.ts'
import type { Host } from './hosts.ts'
import type { LaneConnection } from './lane.ts'
import { cancelStatement, requirePrimary } from './primary.ts'
import { buildSockets, type Sockets } from './sockets.ts'
import type { Terms } from './terms.ts'
import { withTimeout } from './timeout.ts'

/** A pool of the driver. Each of ours has one connection. */
export type Sql = postgres.Sql

/** The connections of one session, with their sockets. */
export interface Pools {
  /** Opens one more connection, or throws why the server cannot be used. */
  open(): Promise<LaneConnection>
  /** One more connection, for one user alone. It is opened with its first statement. */
  openAlone(onClosed: () => void): AloneConnection
  /** How many warnings the server has sent. */
  warnings(): number
  /** Lets the statements under way finish within this time, then cuts every connection. */
  end(graceMs: number): Promise<void>
}

/** A connection of one user, which must close it. */
export interface AloneConnection {
  readonly sql: Sql
  /** Closes the connection at once, even in the middle of an answer. */
  close(): Promise<void>
}

export interface PoolsOptions {
  readonly address: Address
  readonly at: Host
  readonly terms: Terms
  /** Called when a connection was closed by the server, unless it was opened for one user alone. */
  readonly onClosed: () => void
}

const cancelTimeoutMs = 2_000

export function buildPools({ address, at, terms, onClosed }: PoolsOptions): Pools {
  const { connectTimeoutMs: timeoutMs } = address
  const newSockets = () => buildSockets({ ...address, at, tls: terms.tls, timeoutMs })
  const pools = new Map<Sql, Sockets>()
  let warnings = 0

  function openPool(settings: Terms['settings'], onclose: () => void): AloneConnection {
    const { user, password, database, isPrepared } = address
    const sockets = newSockets()
    const sql = postgres({
      host: at.host,
      port: at.port,
      user,
      password,
      database,
      prepare: isPrepared,
      ssl: false,
      socket: sockets.open,
      max: 1,
      fetch_types: false,
      idle_timeout: 0,
      max_lifetime: null,
      keep_alive: null,
      connect_timeout: timeoutMs / 1000,
      connection: { application_name: 'plant-store', ...settings },
      onclose,
      onnotice: ({ severity }: postgres.Notice) => {
        if (severity === 'WARNING') warnings++
      },
    } as unknown as postgres.Options<Record<string, never>>)
    pools.set(sql, sockets)
    return {
      sql: refuseHoles(sql),
      async close() {
        await sql.end({ timeout: 0 })
        sockets.close()
        await sockets.untilEmpty()
        pools.delete(sql)
      },
    }
  }

  async function open(): Promise<LaneConnection> {
    let isOurs = false
    const { sql, close } = openPool(terms.shortSettings, () => {
      if (!isOurs) onClosed()
    })
    try {
      const backend = await withTimeout(requirePrimary(sql), timeoutMs)
      return {
        sql,
        cancel: () => cancelStatement(newSockets(), backend, cancelTimeoutMs),
        close() {
          isOurs = true
          return close()
        },
      }
    } catch (error) {
      void close()
      throw error
    }
  }

  async function end(graceMs: number): Promise<void> {
    const ended = Promise.all(
      // A pool that lost its server waits out the time, though nothing can come any more.
      [...pools].map(([sql, sockets]) =>
        Promise.race([sql.end({ timeout: graceMs / 1000 }), sockets.untilEmpty()]),
      ),
    )
    await withTimeout(ended, graceMs + 100).catch(() => {})
    for (const sockets of pools.values()) sockets.destroy()
  }

  const openAlone = (onAloneClosed: () => void) => openPool(terms.settings, onAloneClosed)
  return { open, openAlone, warnings: () => warnings, end }
}

/** A query of the driver, with the functions that settle it. */
interface Settled {
  resolve(rows: unknown): void
  reject(reason: unknown): void
}

/**
 * Compares the rows of each result with the number that the server gives. After an error in the
 * middle of a result, the driver puts the rows of the next one behind as many empty places.
 */
function refuseHoles(sql: Sql): Sql {
  const check = <Query>(query: Query): Query => {
    if (!(query instanceof Promise)) return query
    const settled = query as unknown as Settled
    const { resolve, reject } = settled
    settled.resolve = (rows) => (hasHoles(rows) ? reject(new RowsMissing()) : resolve(rows))
    return query
  }
  const checked = (...args: Parameters<Sql>) => check(sql(...args))
  return Object.assign(checked, sql, {
    unsafe: (...args: Parameters<Sql['unsafe']>) => check(sql.unsafe(...args)),
  }) as unknown as Sql
}

/** Streams and results of several statements have no count; a plain write has no rows. */
function hasHoles(rows: unknown): boolean {
  const { length, count } = rows as { readonly length?: number; readonly count?: number | null }
  return length !== undefined && length > 0 && typeof count === 'number' && length !== count
}
