import { unreachable } from '../failures.ts'
import { type Address, encryptions, type Host, toSocketPath } from './address.ts'
import { type Connection, openConnection, type Terms } from './connection.ts'
import { codeOf, type Lost, TlsFailure, withTimeout } from './failures.ts'
import { buildLane, type Lane } from './lane.ts'
import { requirePrimary } from './schema.ts'
import type { Sql } from './sql.ts'
import { readTlsOptions } from './tls.ts'

/** Open connections to one server, which was the primary when they were opened. */
export interface Session {
  /** One open connection each. A statement that fails on it may have been executed. */
  readonly writers: readonly Sql[]
  /** Short reads: plants by id, tokens. */
  readonly lookUps: Lane
  /** Reads of many plants, in a separate lane so that they do not delay look-ups. */
  readonly pages: Lane
  /** Small writes other than those of plants. */
  readonly chores: Lane
  /** Resolves with the reason when the server becomes unusable. */
  readonly lost: Promise<unknown>
  /** Opens one more connection for one caller, which must end it. */
  openDedicated(): Promise<Connection>
  /** Lets the statements in flight finish within this time, then closes every connection. */
  end(graceMs: number): Promise<void>
}

export const writerCount = 2
export const lookUpConnections = 3
export const pageConnections = 6
/** Pipelined reads save system calls and wake-ups on both sides. */
const readDepth = 10
const heartbeatMs = 250
const heartbeatTimeoutMs = 1_000

/**
 * Opens a session on the primary among the hosts, or throws why there is none. If two servers claim
 * to be the primary, the first to answer wins. The server ends reads that exceed `answerTimeoutMs`,
 * and transactions that wait longer for their next statement.
 */
export async function openSession(address: Address, answerTimeoutMs: number): Promise<Session> {
  const attempts = address.hosts.map((at) => openAt(at, address, answerTimeoutMs))
  const session = await Promise.any(attempts)
  for (const attempt of attempts) {
    void attempt.then((other) => (other === session ? undefined : other.end(0))).catch(() => {})
  }
  return session
}

/** What is sent with each kind of connection. */
type Options = Readonly<Record<'dedicated' | 'writes' | 'reads', Terms['options']>>

/** Opens a session on the first terms that both sides agree to. */
async function openAt(at: Host, address: Address, answerTimeoutMs: number): Promise<Session> {
  const { parameters } = address
  let refusal: unknown
  // As in libpq, a Unix socket is not encrypted.
  for (const encryption of encryptions[toSocketPath(at) ? 'disable' : parameters.sslmode]) {
    const tls = encryption === 'tls' ? await readTlsOptions(parameters) : undefined
    for (const options of toOptions(parameters.options, answerTimeoutMs)) {
      try {
        return await openOnTerms(address, at, tls, options)
      } catch (error) {
        refusal = error
        // Poolers and older servers refuse settings that they do not know.
        if (['08P01', '0A000', '42704'].includes(codeOf(error))) continue
        // The server may refuse connections with this encryption, or without it.
        if (error instanceof TlsFailure || codeOf(error) === '28000') break
        throw error
      }
    }
  }
  throw refusal
}

/** What the statements rely on, whatever the defaults of the server, the database or the role. */
const assumed = {
  search_path: 'pg_catalog',
  // A statement that has waited for a lock sees what the other transaction has committed.
  default_transaction_isolation: 'read committed',
  // An absent tag is a NULL in an array.
  array_nulls: 'on',
  // A commit that no standby has confirmed is a warning.
  client_min_messages: 'warning',
  standard_conforming_strings: 'on',
  // An idle writer is needed later, and losing it would end the session.
  idle_session_timeout: '0',
}

/**
 * The preferred settings, and those that every pooler accepts. With `search_path = pg_catalog`,
 * other users of the database cannot replace functions, operators and types by their own. Behind a
 * pooler, our statements are safe as long as `pg_catalog` comes first, which every connection
 * checks.
 */
function toOptions(given: string | undefined, answerTimeoutMs: number): Options[] {
  // Cached plans made while the table was small would keep a sequential scan after it grew. Before
  // PostgreSQL 18 the penalty for sequential scans also triggers JIT, so JIT is off.
  const plans = { enable_seqscan: 'off', jit: 'off' }
  // A process that is suspended or cut off inside a transaction would keep its locks. Followers of
  // every process wait for the one on the sequence of the journal.
  const hung = { idle_in_transaction_session_timeout: String(answerTimeoutMs) }
  const writes = { ...assumed, ...plans, ...hung }
  // PostgreSQL would plan each page anew for its LIMIT, a quarter of the server's time for a page.
  const planOnce = { plan_cache_mode: 'force_generic_plan' }
  const reads = { ...writes, ...planOnce, statement_timeout: String(answerTimeoutMs) }
  // Of two values for one setting, the server takes the last.
  const add = (settings: Readonly<Record<string, string>>) =>
    Object.entries(settings).reduce(
      (before, [name, value]) => `${before} -c ${name}=${value.replaceAll(' ', '\\ ')}`,
      given ?? '',
    )
  return [
    { dedicated: add(assumed), writes: add(writes), reads: add(reads) },
    { dedicated: given, writes: given, reads: given },
  ]
}

async function openOnTerms(
  address: Address,
  at: Host,
  tls: Terms['tls'],
  options: Options,
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

  async function open(kind: keyof Options): Promise<Connection> {
    const onClosed = (reason: Lost | undefined) => {
      connections.delete(connection)
      if (reason !== undefined && kind !== 'dedicated') lose(reason)
    }
    const terms = { tls, options: options[kind], isPipelined: kind !== 'dedicated' }
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
      openDedicated: () => open('dedicated'),
      end,
    }
  } catch (error) {
    await end(0)
    throw error
  }
}
