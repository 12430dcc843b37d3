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

  /** Tries all hosts again and again until one of them is the primary, or a retry is of no use. */
  async function find(mayRetry: (error: unknown) => boolean): Promise<Session> {
    for (;;) {
      try {
        return await openSession(address, answerTimeoutMs)
      } catch (error) {
        if (!mayRetry(error)) throw error
        await sleep(retryMs)
      }
    }
  }

  function adopt(session: Session): void {
    current = session
    void session.lost.then((reason) => {
      current = undefined
      events.onLost(reason)
      void session.end(farewellMs)
      find(() => !isClosed).then(
        (next) => {
          if (isClosed) return next.end(0)
          adopt(next)
          events.onFound()
        },
        () => {},
      )
    })
  }

  const deadline = performance.now() + startTimeoutMs
  const first = await find(
    (error) =>
      toUnusable(error, hosts) instanceof UnreachableStore && performance.now() <= deadline,
  ).catch((error) => {
    throw toUnusable(error, hosts)
  })
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
