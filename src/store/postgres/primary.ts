import { setTimeout as sleep } from 'node:timers/promises'
import { type Journaling, type StoreEvents, UnreachableStore } from '../store.ts'
import { toAddress } from './address.ts'
import { Lost, toUnusable } from './failures.ts'
import { setJournaling } from './journal.ts'
import { prepareSchema, renewIfCopied } from './schema.ts'
import { openSession, type Session } from './session.ts'
import type { Sql } from './sql.ts'

/** The server that currently accepts writes. */
export interface Primary {
  /** How long a caller waits for an answer, counted from the arrival of its request. */
  readonly answerTimeoutMs: number
  /** The connections to it; undefined while no server is usable. */
  session(): Session | undefined
  close(): Promise<void>
}

export interface PrimaryOptions {
  /** How long the start waits for a server that does not answer yet. */
  readonly startTimeoutMs?: number
  readonly answerTimeoutMs?: number
  readonly journaling?: Journaling
}

const defaultTimeoutMs = 5_000
const retryMs = 100
/** How long the statements in flight on a lost session may still be answered. */
const farewellMs = 1_000

/**
 * Finds the primary among the hosts of the address, prepares its schema, and follows the primary
 * after a failover.
 */
export async function openPrimary(
  url: string,
  events: StoreEvents,
  options: PrimaryOptions = {},
): Promise<Primary> {
  const { startTimeoutMs = defaultTimeoutMs, answerTimeoutMs = defaultTimeoutMs } = options
  const address = toAddress(url)
  const { hosts } = address
  let current: Session | undefined
  let isClosed = false

  function adopt(session: Session): void {
    current = session
    void session.lost.then((reason) => {
      current = undefined
      events.onLost(reason)
      void session.end(farewellMs)
      void reconnect()
    })
  }

  async function reconnect(): Promise<void> {
    while (!isClosed) {
      try {
        const session = await openSession(address, answerTimeoutMs)
        if (isClosed) return await session.end(0)
        adopt(session)
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
        return await openSession(address, answerTimeoutMs)
      } catch (error) {
        const unusable = toUnusable(error, hosts)
        const mayWait = unusable instanceof UnreachableStore && performance.now() <= deadline
        if (!mayWait) throw unusable
        await sleep(retryMs)
      }
    }
  }

  const first = await start()
  adopt(first)
  try {
    const [writer] = first.writers as [Sql]
    const migration = await prepareSchema(writer, events.onNew)
    if (migration !== undefined) events.onMigrated?.(migration)
    await renewIfCopied(writer)
    await setJournaling(writer, options.journaling ?? 'as before')
  } catch (error) {
    isClosed = true
    await first.end(0)
    throw error instanceof Lost ? toUnusable(error, hosts) : error
  }
  return {
    answerTimeoutMs,
    session: () => current,
    async close() {
      isClosed = true
      await current?.end(farewellMs)
    },
  }
}
