import { setTimeout as sleep } from 'node:timers/promises'
import postgres from 'postgres'
import { unreachable } from '../failures.ts'
import { type StoreEvents, UnusableStore } from '../store.ts'
import { codeOf, isLoss } from './failures.ts'
import { prepareSchema } from './schema.ts'
import { type Host, NotPrimary, openSession, type Session, type Sql } from './session.ts'

/** The session that serves now, whichever server it is on. */
export interface Connection {
  /** Undefined while no server can be used. */
  session(): Session | undefined
  /** Tells that the session is of no use any more: a statement on it said so. */
  giveUp(session: Session, reason: unknown): void
  close(): Promise<void>
}

/** How long a start waits for a server that does not answer yet. */
const defaultStartTimeoutMs = 5_000
const retryMs = 100
/** How long the statements of a lost session may go on, in case they still get their answer. Others wait for them. */
const farewellMs = 1_000

/** Finds the primary among the hosts of the address, prepares it, and from then on follows it. */
export async function openPrimary(
  url: string,
  events: StoreEvents,
  startTimeoutMs = defaultStartTimeoutMs,
): Promise<Connection> {
  const hosts = toHosts(url)
  let current: Session | undefined
  let isClosed = false

  async function connect(): Promise<Session> {
    const attempts = hosts.map((at) => {
      const attempt = openSession({ url, at, onLost: (reason) => lose(opened, reason) })
      let opened: Session | undefined
      return attempt.then((session) => {
        opened = session
        return session
      })
    })
    const session = await Promise.any(attempts)
    // Two servers that both take themselves for the primary: the first that answered is used, the other let go.
    for (const attempt of attempts) {
      void attempt.then((other) => (other === session ? undefined : other.end(0))).catch(() => {})
    }
    // Lost before anybody could be told: it is as if it had never been opened.
    if (session.isOver()) throw unreachable()
    return session
  }

  function lose(session: Session | undefined, reason: unknown): void {
    if (session === undefined || session !== current) return
    current = undefined
    events.onLost(reason)
    void session.end(farewellMs)
    void reconnect()
  }

  async function reconnect(): Promise<void> {
    while (!isClosed) {
      try {
        const session = await connect()
        if (isClosed) return await session.end(0)
        current = session
        return events.onFound()
      } catch {
        await sleep(retryMs, undefined, { ref: false })
      }
    }
  }

  async function start(): Promise<Session> {
    const deadline = performance.now() + startTimeoutMs
    for (;;) {
      try {
        return await connect()
      } catch (error) {
        const failure = explain(error, hosts)
        if (failure.isFinal || performance.now() > deadline) {
          throw new UnusableStore(failure.message, { cause: error })
        }
        await sleep(retryMs)
      }
    }
  }

  const first = await start()
  current = first
  try {
    await prepareSchema(first.writers[0] as Sql)
  } catch (error) {
    isClosed = true
    await first.end(0)
    throw isLoss(error) ? new UnusableStore(explain(error, hosts).message, { cause: error }) : error
  }
  return {
    session: () => current,
    giveUp: lose,
    async close() {
      isClosed = true
      await current?.end(farewellMs)
    },
  }
}

function toHosts(url: string): Host[] {
  const { host, port } = postgres(url).options
  return host.map((name, index) => ({ host: name, port: port[index] ?? 5432 }))
}

/** Why no server could be used, in one line for the operator, and whether waiting could help. */
function explain(error: unknown, hosts: Host[]): { message: string; isFinal: boolean } {
  const reasons: unknown[] = error instanceof AggregateError ? error.errors : [error]
  const names = hosts.map(({ host, port }) => `${host}:${port}`).join(', ')
  for (const reason of reasons) {
    const message = finalReasons[codeOf(reason)]
    if (message) return { message, isFinal: true }
  }
  if (reasons.every((reason) => reason instanceof NotPrimary)) {
    return {
      message: `No server of DATABASE_URL (${names}) is a primary: all are standbys.`,
      isFinal: false,
    }
  }
  const codes = [...new Set(reasons.map((reason) => codeOf(reason) || String(reason)))].join(', ')
  return {
    message: `No PostgreSQL server answers at ${names} of DATABASE_URL (${codes}). Check the address, and that it is PostgreSQL.`,
    isFinal: false,
  }
}

const finalReasons: Record<string, string> = {
  '28P01': 'PostgreSQL refuses the user name or the password of DATABASE_URL.',
  '28000': 'PostgreSQL does not let the user of DATABASE_URL in: see its pg_hba.conf.',
  '3D000': 'The database that DATABASE_URL names does not exist: create it, or name another.',
  '42501': 'The user of DATABASE_URL may not connect to the database: grant it CONNECT.',
}
