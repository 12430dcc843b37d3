import { setTimeout as sleep } from 'node:timers/promises'
import { unreachable } from '../failures.ts'
import { type Journaling, type StoreEvents, UnusableStore } from '../store.ts'
import { toAddress } from './address.ts'
import { explain } from './explain.ts'
import { isLoss } from './failures.ts'
import { pauseIfCopied } from './home.ts'
import { setJournaling } from './journal.ts'
import type { Sql } from './pools.ts'
import { prepareSchema } from './schema.ts'
import { openSession, type Session, takeFirst } from './session.ts'

/** The current session, on whichever server the primary is. */
export interface Connection {
  /** Undefined while no server can be used. */
  session(): Session | undefined
  /** Gives up a session whose server can no longer be used, as a statement has shown. */
  giveUp(session: Session, reason: unknown): void
  close(): Promise<void>
}

/** How long a start waits for a server that does not answer yet. */
const defaultStartTimeoutMs = 5_000
const retryMs = 100
/** How long statements of a lost session may still get their answers. New ones wait for them. */
const farewellMs = 1_000

/**
 * Finds the primary among the hosts of the address, prepares its schema, and follows it from then
 * on.
 */
export async function openPrimary(
  url: string,
  events: StoreEvents,
  startTimeoutMs = defaultStartTimeoutMs,
  wanted: Journaling = 'as before',
): Promise<Connection> {
  const address = toAddress(url)
  const { hosts } = address
  let current: Session | undefined
  let isClosed = false

  async function connect(): Promise<Session> {
    const attempts = hosts.map((at) => {
      const attempt = openSession({ address, at, onLost: (reason) => lose(opened, reason) })
      let opened: Session | undefined
      return attempt.then((session) => {
        opened = session
        return session
      })
    })
    const session = await takeFirst(attempts)
    // It was lost before it became the current session, so `lose` ignored that.
    if (session.isOver()) {
      await session.end(0)
      throw unreachable()
    }
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
    const [writer] = first.writers as [Sql]
    const migration = await prepareSchema(writer, events.onNew)
    if (migration !== undefined) events.onMigrated?.(migration)
    await pauseIfCopied(writer)
    await setJournaling(writer, wanted)
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
