import { setTimeout as sleep } from 'node:timers/promises'
import { unreachable } from '../failures.ts'
import {
  type Journaling,
  type StoreEvents,
  UnreachableStore,
  type UnusableStore,
} from '../store.ts'
import { type Address, encryptions, type Host, toAddress, toSocketPath } from './address.ts'
import { type Connection, openConnection } from './connection.ts'
import { codeOf, Lost, TlsFailure, toUnusable, withTimeout } from './failures.ts'
import { buildLane } from './lane.ts'
import { prepareStore, requirePrimary } from './prepare.ts'
import type { Sql } from './sql.ts'

/** The server that currently accepts writes. */
export type Primary = Awaited<ReturnType<typeof openPrimary>>
/** Open connections to one server, which was the primary when they were opened. */
export type Session = Awaited<ReturnType<typeof openSession>>

export interface PrimaryOptions {
  /** The password for an address without one. */
  readonly password?: string | undefined
  /** How long the start waits for a server that does not answer yet. */
  readonly startTimeoutMs?: number
  readonly answerTimeoutMs?: number
  readonly journaling?: Journaling
}

export const writerCount = 2
export const lookUpConnections = 3
const pageConnections = 6
const heartbeatMs = 250
const heartbeatTimeoutMs = 1_000
const defaultTimeoutMs = 5_000
const retryMs = 100
/** How long the statements in flight on a lost session may still be answered. */
const farewellMs = 1_000

/**
 * Finds the primary among the hosts of the address, prepares its schema, and follows the primary
 * after a failover.
 */
export async function openPrimary(url: string, events: StoreEvents, options: PrimaryOptions = {}) {
  const { startTimeoutMs = defaultTimeoutMs, answerTimeoutMs = defaultTimeoutMs } = options
  const address = toAddress(url, options.password)
  let current: Session | undefined
  let isClosed = false

  /** Tries all hosts again and again until one of them is the primary, or a retry is of no use. */
  async function find(mayRetry: (reason: UnusableStore) => boolean): Promise<Session> {
    for (;;) {
      try {
        return await openSession(address, answerTimeoutMs)
      } catch (error) {
        const reason = toUnusable(error, address.hosts)
        if (!mayRetry(reason)) throw reason
        await sleep(retryMs)
      }
    }
  }

  async function close(): Promise<void> {
    isClosed = true
    await current?.end(farewellMs)
  }

  async function follow(session: Session): Promise<void> {
    current = session
    const reason = await session.lost
    if (isClosed) return
    current = undefined
    events.onLost(reason)
    void session.end(farewellMs)
    const next = await find(() => !isClosed)
    if (isClosed) return next.end(0)
    void follow(next).catch(() => {})
    events.onFound()
  }

  const deadline = performance.now() + startTimeoutMs
  const first = await find(
    (reason) => reason instanceof UnreachableStore && performance.now() <= deadline,
  )
  // Also ends the statements below if the session is lost.
  void follow(first).catch(() => {})
  try {
    await prepareStore(first.chores, events, options.journaling ?? 'as before')
  } catch (error) {
    await close()
    throw error instanceof Lost ? toUnusable(error, address.hosts) : error
  }
  return {
    /** How long a caller waits for an answer, counted from the arrival of its request. */
    answerTimeoutMs,
    /** The connections to it; undefined while no server is usable. */
    session: () => current,
    close,
  }
}

/**
 * Opens a session on the primary among the hosts, or throws why there is none. If two servers claim
 * to be the primary, the first to answer wins. The server ends reads that exceed `answerTimeoutMs`,
 * and transactions that wait longer for their next statement.
 */
export async function openSession(address: Address, answerTimeoutMs: number) {
  const attempts = address.hosts.map((at) => openAt(at, address, answerTimeoutMs))
  const session = await Promise.any(attempts)
  for (const attempt of attempts) {
    void attempt.then((other) => (other === session ? undefined : other.end(0))).catch(() => {})
  }
  return session
}

/** Opens a session on the first terms that both sides agree to. */
async function openAt(at: Host, address: Address, answerTimeoutMs: number) {
  const { options, sslmode } = address.parameters
  // As in libpq, a Unix socket is not encrypted.
  const encrypted = encryptions[toSocketPath(at) === undefined ? sslmode : 'disable']
  const terms = encrypted.flatMap((encryption) => [
    { encryption, ...toOptions(options, answerTimeoutMs) },
    { encryption, writes: options ?? '', reads: options ?? '' },
  ])
  let refusal: unknown
  for (const one of terms) {
    try {
      return await openOnTerms(address, at, one)
    } catch (error) {
      if (!(error instanceof TlsFailure) && !negotiable.includes(codeOf(error))) throw error
      refusal = error
    }
  }
  throw refusal
}

type Terms = ReturnType<typeof toOptions> & { readonly encryption: 'none' | 'tls' }

/**
 * Poolers and older servers refuse settings that they do not know, and a server may refuse
 * connections with this encryption, or without it.
 */
const negotiable = ['08P01', '0A000', '42704', '28000']

/** What the statements rely on, whatever the defaults of the server, the database or the role. */
const assumed = {
  // Other users of the database cannot replace functions, operators and types by their own.
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
  // Cached plans made while the table was small would keep a sequential scan after it grew. Before
  // PostgreSQL 18 the penalty for sequential scans also triggers JIT, so JIT is off.
  enable_seqscan: 'off',
  jit: 'off',
}

/**
 * The preferred settings. Poolers accept none but those of the address. Behind one, our statements
 * are safe as long as `pg_catalog` comes first in the search path, which every connection checks.
 */
function toOptions(given = '', answerTimeoutMs: number) {
  const timeout = String(answerTimeoutMs)
  // A process that is suspended or cut off inside a transaction would keep its locks. Followers of
  // every process wait for the one on the sequence of the journal.
  const writes = { ...assumed, idle_in_transaction_session_timeout: timeout }
  // PostgreSQL would plan each page anew for its LIMIT, a quarter of the server's time for a page.
  const planOnce = { plan_cache_mode: 'force_generic_plan' }
  const reads = { ...writes, ...planOnce, statement_timeout: timeout }
  // Of two values for one setting, the server takes the last.
  const toText = (settings: Readonly<Record<string, string>>) =>
    Object.entries(settings).reduce(
      (before, [name, value]) => `${before} -c ${name}=${value.replaceAll(' ', '\\ ')}`,
      given,
    )
  return { writes: toText(writes), reads: toText(reads) }
}

async function openOnTerms(address: Address, at: Host, terms: Terms) {
  const connections = new Set<Connection>()
  const { promise: lost, resolve: lose } = Promise.withResolvers<unknown>()
  const lookUps = buildLane(() => openShared('reads'), lookUpConnections)
  const pages = buildLane(() => openShared('reads'), pageConnections)
  let isOver = false

  async function open(kind: 'writes' | 'reads'): Promise<Connection> {
    const connection = await openConnection(address, at, terms.encryption, terms[kind])
    connections.add(connection)
    void connection.closed.then(() => connections.delete(connection))
    if (!isOver) return connection
    connection.destroy()
    throw unreachable()
  }

  /** Opens a connection whose loss is the loss of the session. */
  async function openShared(kind: 'writes' | 'reads'): Promise<Connection> {
    const connection = await open(kind)
    void connection.closed.then((reason) => reason && lose(reason))
    return connection
  }

  async function heartbeat(watcher: Sql): Promise<void> {
    while (!isOver) {
      await withTimeout(requirePrimary(watcher), heartbeatTimeoutMs)
      await sleep(heartbeatMs, undefined, { ref: false })
    }
  }

  /** Lets the statements in flight finish within this time, then closes every connection. */
  async function end(graceMs: number): Promise<void> {
    isOver = true
    await Promise.all([...connections].map((connection) => connection.end(graceMs)))
  }

  try {
    const { sql: watcher } = await openShared('writes')
    const others = Array.from({ length: writerCount + 1 }, () => openShared('writes'))
    const [chores, ...writers] = (await Promise.all(others)).map(({ sql }) => sql)
    heartbeat(watcher).catch(lose)
    return {
      /** One open connection each. A statement that fails on it may have been executed. */
      writers,
      /** The same, for small writes other than those of plants. */
      chores: chores as Sql,
      /** Short reads: plants by id, tokens. */
      lookUps,
      /** Reads of many plants, in a separate lane so that they do not delay look-ups. */
      pages,
      /** Resolves with the reason when the server becomes unusable. Then the session must end. */
      lost,
      /** Opens one more connection for one caller, which must end it. */
      openDedicated: () => open('reads'),
      end,
    }
  } catch (error) {
    await end(0)
    throw error
  }
}
