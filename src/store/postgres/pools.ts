import postgres from 'postgres'
import type { Address, Host } from './address.ts'
import type { LaneConnection } from './lane.ts'
import { cancelStatement, requirePrimary } from './primary.ts'
import { buildSockets, type Sockets } from './sockets.ts'
import type { Terms } from './terms.ts'
import { withTimeout } from './timeout.ts'

/** A pool of the driver. Each of ours has one connection. */
export type Sql = postgres.Sql

/** The pools of one session, with their sockets. */
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
  /** Called when a connection was closed, unless it was opened for one user alone. */
  readonly onClosed: () => void
}

const attemptTimeoutMs = 2_000

export function buildPools({ address, at, terms, onClosed }: PoolsOptions): Pools {
  const newSockets = () => buildSockets({ at, tls: terms.tls, timeoutMs: attemptTimeoutMs })
  const sockets = newSockets()
  const aloneSockets = new Set<Sockets>()
  const pools = new Set<Sql>()
  let warnings = 0

  function openPool(
    socket: Sockets['open'],
    settings: Terms['settings'],
    onclose: () => void,
  ): Sql {
    const { user, password, database, isPrepared } = address
    return postgres({
      host: at.host,
      port: at.port,
      user,
      password,
      database,
      prepare: isPrepared,
      ssl: false,
      socket,
      max: 1,
      fetch_types: false,
      idle_timeout: 0,
      max_lifetime: null,
      connect_timeout: attemptTimeoutMs / 1000,
      connection: { application_name: 'plant-store', ...settings },
      onclose,
      onnotice: ({ severity }) => {
        if (severity === 'WARNING') warnings++
      },
    } as postgres.Options<Record<string, never>>)
  }

  async function open(): Promise<LaneConnection> {
    const sql = openPool(sockets.open, terms.shortSettings, onClosed)
    pools.add(sql)
    try {
      const backend = await withTimeout(requirePrimary(sql), attemptTimeoutMs)
      return { sql, cancel: () => cancelStatement(sockets, backend, attemptTimeoutMs) }
    } catch (error) {
      pools.delete(sql)
      void sql.end({ timeout: 0 })
      throw error
    }
  }

  function openAlone(onAloneClosed: () => void): AloneConnection {
    const own = newSockets()
    aloneSockets.add(own)
    const sql = openPool(own.open, terms.settings, onAloneClosed)
    return {
      sql,
      async close() {
        await sql.end({ timeout: 0 })
        own.close()
        await own.untilEmpty()
        aloneSockets.delete(own)
      },
    }
  }

  async function end(graceMs: number): Promise<void> {
    const ended = Promise.all([...pools].map((pool) => pool.end({ timeout: graceMs / 1000 })))
    // A pool that lost its server waits out the time, though nothing can come any more.
    const gone = Promise.race([ended, sockets.untilEmpty()])
    await withTimeout(gone, graceMs + 100).catch(() => {})
    for (const group of [sockets, ...aloneSockets]) group.destroy()
  }

  return { open, openAlone, warnings: () => warnings, end }
}
