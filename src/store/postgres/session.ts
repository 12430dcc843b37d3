import { unreachable } from '../failures.ts'
import { type Address, type Host, isUnixSocket } from './address.ts'
import { type Connection, openConnection, requirePrimary, type Terms } from './connection.ts'
import { codeOf, TlsFailure, withTimeout } from './failures.ts'
import { buildLane, type Lane } from './lane.ts'
import type { Sql } from './sql.ts'
import { encryptions, readTlsOptions } from './tls.ts'

export interface SessionOptions {
  readonly address: Address
  readonly at: Host
  /** How long a read may take. The server ends it then. */
  readonly readTimeoutMs: number
  /** Called once, when the server cannot be used any more. */
  readonly onLost: (reason: unknown) => void
}

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
  /** Opens one more connection for one user, who must end it. */
  openAlone(): Promise<Connection>
  /** How many warnings the server has sent to writers. */
  warnings(): number
  /** Whether it was lost or ended. */
  isOver(): boolean
  /** Lets the statements under way finish within this time, then closes every connection. */
  end(graceMs: number): Promise<void>
}

export const writerCount = 2
export const lookUpConnections = 3
export const pageConnections = 6
/** Reads that are sent together save system calls and wake-ups on both sides. */
export const readDepth = 10
const beatMs = 250
const beatTimeoutMs = 1_000

/** Opens a session on the first terms that both sides agree to, or throws why there are none. */
export async function openSession(options: SessionOptions): Promise<Session> {
  const { address, at } = options
  let refusal: unknown
  // As in libpq, nothing is encrypted within one machine.
  for (const encryption of encryptions[isUnixSocket(at) ? 'disable' : address.tls.mode]) {
    const tls = encryption === 'tls' ? await readTlsOptions(address.tls, at.host) : undefined
    try {
      return await openPinned(tls, options)
    } catch (error) {
      // The server may refuse connections with this encryption, or without it.
      if (!(error instanceof TlsFailure) && codeOf(error) !== '28000') throw error
      refusal = error
    }
  }
  throw refusal
}

/**
 * A connection keeps its plans: one made for a few plants would still read all of them when they
 * are many. Up to PostgreSQL 17, tables without an index would then seem worth the compiler.
 */
const byIndex = { enable_seqscan: 'off', jit: 'off' }

/**
 * Opens a session that finds functions, operators and types in `pg_catalog` only: other users of
 * the database cannot put theirs in their place. PgBouncer refuses this setting. Through it, our
 * statements are safe as long as `pg_catalog` comes first, which every connection checks.
 */
async function openPinned(tls: Terms['tls'], options: SessionOptions): Promise<Session> {
  const settings = { application_name: 'plant-store', ...options.address.settings }
  const pinned = { ...settings, search_path: 'pg_catalog' }
  const short = { ...pinned, ...byIndex }
  try {
    return await openOnTerms(options, {
      alone: { tls, settings: pinned },
      writes: { tls, settings: short },
      reads: { tls, settings: { ...short, statement_timeout: String(options.readTimeoutMs) } },
    })
  } catch (error) {
    if (codeOf(error) !== '08P01') throw error
    const bare = { tls, settings }
    return openOnTerms(options, { alone: bare, writes: bare, reads: bare })
  }
}

async function openOnTerms(
  { address, at, onLost }: SessionOptions,
  terms: Readonly<Record<'alone' | 'writes' | 'reads', Terms>>,
): Promise<Session> {
  const connections = new Set<Connection>()
  const openWriter = () => open(terms.writes, lose)
  const reads = {
    open: () => open(terms.reads, lose),
    depth: readDepth,
    whenLate: 'destroy',
  } as const
  const lookUps = buildLane({ ...reads, connections: lookUpConnections })
  const pages = buildLane({ ...reads, connections: pageConnections })
  const chores = buildLane({ open: openWriter, connections: 1, depth: 1, whenLate: 'wait' })
  let isOver = false
  let beatTimer: NodeJS.Timeout | undefined

  async function open(kind: Terms, onClosed: (reason: unknown) => void): Promise<Connection> {
    const opened = await openConnection(address, at, kind, onClosed)
    if (isOver) {
      opened.destroy()
      throw unreachable()
    }
    const connection: Connection = {
      ...opened,
      end(graceMs) {
        connections.delete(connection)
        return opened.end(graceMs)
      },
      destroy() {
        connections.delete(connection)
        opened.destroy()
      },
    }
    connections.add(connection)
    return connection
  }

  function stop(): void {
    isOver = true
    clearTimeout(beatTimer)
    for (const one of [lookUps, pages, chores]) one.close()
  }

  function lose(reason: unknown): void {
    if (isOver) return
    stop()
    onLost(reason)
  }

  async function beat(watcher: Sql): Promise<void> {
    try {
      await withTimeout(requirePrimary(watcher), beatTimeoutMs)
      if (!isOver) beatTimer = setTimeout(beat, beatMs, watcher).unref()
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
    beatTimer = setTimeout(beat, beatMs, watcher.sql).unref()
    return {
      writers: opened.map(({ sql }) => sql),
      lookUps,
      pages,
      chores,
      openAlone: () => open(terms.alone, () => {}),
      warnings: () => opened.reduce((sum, { warnings }) => sum + warnings(), 0),
      isOver: () => isOver,
      end,
    }
  } catch (error) {
    await end(0)
    throw error
  }
}

/** The first session that opens, if two servers claim to be the primary. Others are ended. */
export async function takeFirstSession(attempts: readonly Promise<Session>[]): Promise<Session> {
  const session = await Promise.any(attempts)
  for (const attempt of attempts) {
    void attempt.then((other) => (other === session ? undefined : other.end(0))).catch(() => {})
  }
  return session
}
