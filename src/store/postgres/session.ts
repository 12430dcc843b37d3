import { unreachable } from '../failures.ts'
import { type Address, type Host, isUnixSocket } from './address.ts'
import { type Connection, openConnection, requirePrimary, type Terms } from './connection.ts'
import { codeOf, type Lost, TlsFailure, withTimeout } from './failures.ts'
import { buildLane, type Lane } from './lane.ts'
import type { Sql } from './sql.ts'
import { encryptions, readTlsOptions } from './tls.ts'

/** Open connections to one server that was the primary when they were made. */
export interface Session {
  /** Each has one connection, already open: a statement that fails on it may have been executed. */
  readonly writers: readonly Sql[]
  /** Short reads: plants by their ids, tokens. */
  readonly lookUps: Lane
  /** Reads of many plants, apart from the others: a slow one delays no look-up. */
  readonly pages: Lane
  /** Small writes, beside those of plants. */
  readonly chores: Lane
  /** Resolves with the reason when the server cannot be used any more. */
  readonly lost: Promise<unknown>
  /** Opens one more connection for one user, who must end it. */
  openDedicated(): Promise<Connection>
  /** How many warnings the server has sent to writers. */
  warnings(): number
  /** Lets the statements under way finish within this time, then closes every connection. */
  end(graceMs: number): Promise<void>
}

export const writerCount = 2
export const lookUpConnections = 3
export const pageConnections = 6
/** Reads that are sent together save system calls and wake-ups on both sides. */
export const readDepth = 10
const heartbeatMs = 250
const heartbeatTimeoutMs = 1_000

/**
 * Opens a session on the primary among the hosts, or throws why there is none. Of two servers that
 * claim to be it, the first is taken. The server ends reads that take longer than `readTimeoutMs`.
 */
export async function openSession(address: Address, readTimeoutMs: number): Promise<Session> {
  const attempts = address.hosts.map((at) => openAt(at, address, readTimeoutMs))
  const session = await Promise.any(attempts)
  for (const attempt of attempts) {
    void attempt.then((other) => (other === session ? undefined : other.end(0))).catch(() => {})
  }
  return session
}

/** What the server is told with connections of each kind. */
type Settings = Readonly<Record<'alone' | 'writes' | 'reads', Terms['settings']>>

/** Opens a session on the first terms that both sides agree to. */
async function openAt(at: Host, address: Address, readTimeoutMs: number): Promise<Session> {
  let refusal: unknown
  // As in libpq, nothing is encrypted within one machine.
  for (const encryption of encryptions[isUnixSocket(at) ? 'disable' : address.tls.mode]) {
    const tls = encryption === 'tls' ? await readTlsOptions(address.tls) : undefined
    for (const settings of toSettings(address, readTimeoutMs)) {
      try {
        return await openOnTerms(address, at, tls, settings)
      } catch (error) {
        refusal = error
        // PgBouncer refuses settings that it does not know.
        if (codeOf(error) === '08P01') continue
        // The server may refuse connections with this encryption, or without it.
        if (error instanceof TlsFailure || codeOf(error) === '28000') break
        throw error
      }
    }
  }
  throw refusal
}

/**
 * The settings that are wanted, and those that every pooler takes. Wanted are functions, operators
 * and types from `pg_catalog` only: other users of the database cannot put theirs in their place.
 * Through a pooler, our statements are safe as long as `pg_catalog` comes first, which every
 * connection checks.
 */
function toSettings(address: Address, readTimeoutMs: number): Settings[] {
  const bare = { application_name: 'plant-store', ...address.settings }
  const alone = { ...bare, search_path: 'pg_catalog' }
  // A connection keeps its plans: one made for a few plants would still read all of them when they
  // are many. Up to PostgreSQL 17, tables without an index would then seem worth the compiler.
  const writes = { ...alone, enable_seqscan: 'off', jit: 'off' }
  const reads = { ...writes, statement_timeout: String(readTimeoutMs) }
  return [
    { alone, writes, reads },
    { alone: bare, writes: bare, reads: bare },
  ]
}

async function openOnTerms(
  address: Address,
  at: Host,
  tls: Terms['tls'],
  settings: Settings,
): Promise<Session> {
  const connections = new Set<Connection>()
  const { promise: lost, resolve } = Promise.withResolvers<unknown>()
  const openWriter = () => open('writes')
  const reads = { open: () => open('reads'), depth: readDepth, whenLate: 'destroy' } as const
  const lookUps = buildLane({ ...reads, connections: lookUpConnections })
  const pages = buildLane({ ...reads, connections: pageConnections })
  const chores = buildLane({ open: openWriter, connections: 1, depth: 1, whenLate: 'wait' })
  let isOver = false
  let heartbeatTimer: NodeJS.Timeout | undefined

  async function open(kind: keyof Settings): Promise<Connection> {
    const onClosed = (reason: Lost | undefined) => {
      connections.delete(connection)
      if (reason !== undefined && kind !== 'alone') lose(reason)
    }
    const terms = { tls, settings: settings[kind] }
    const connection = await openConnection(address, at, terms, onClosed)
    connections.add(connection)
    if (!isOver) return connection
    connection.destroy()
    throw unreachable()
  }

  function stop(): void {
    isOver = true
    clearTimeout(heartbeatTimer)
    for (const one of [lookUps, pages, chores]) one.close()
  }

  function lose(reason: unknown): void {
    if (isOver) return
    stop()
    resolve(reason)
  }

  async function heartbeat(watcher: Sql): Promise<void> {
    try {
      await withTimeout(requirePrimary(watcher), heartbeatTimeoutMs)
      if (!isOver) heartbeatTimer = setTimeout(heartbeat, heartbeatMs, watcher).unref()
    } catch (error) {
      lose(error)
    }
  }

  async function end(graceMs: number): Promise<void> {
    stop()
    await Promise.all([...connections].map((connection) => connection.end(graceMs)))
  }

  try {
    const watcher = await openWriter()
    const opened = await Promise.all(Array.from({ length: writerCount }, openWriter))
    heartbeatTimer = setTimeout(heartbeat, heartbeatMs, watcher.sql).unref()
    return {
      writers: opened.map(({ sql }) => sql),
      lookUps,
      pages,
      chores,
      lost,
      openDedicated: () => open('alone'),
      warnings: () => opened.reduce((sum, { warnings }) => sum + warnings(), 0),
      end,
    }
  } catch (error) {
    await end(0)
    throw error
  }
}
