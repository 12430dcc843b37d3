/**
 * Stands in for `src/store/postgres/connection.ts`: connections to the simulated server. A
 * statement travels, waits for those before it, runs, and its answer travels back. On the way it
 * may be late, and the connection may be lost: before the server has it, or after that.
 */
import type { QueryResult } from 'pg'
import type { Connection } from '../../src/store/postgres/connection.ts'
import { Lost, withTimeout } from '../../src/store/postgres/failures.ts'
import { requirePrimary } from '../../src/store/postgres/prepare.ts'
import { buildSql } from '../../src/store/postgres/sql.ts'
import { type Rows, server } from './postgres.ts'
import { type Actor, world } from './world.ts'

const connectTimeoutMs = 2_000

/** Opens a connection of the current process. */
export async function openConnection(): Promise<Connection> {
  const { plan, actor, pause } = world()
  const process = actor()
  const weather = server().weather
  await pause(weather.travelMs())
  if (!server().isUp() || weather.isRefused()) throw new Lost('ECONNREFUSED')
  const backend = server().connect(process, (reason) => lose(new Lost(reason)))
  const inFlight = new Set<(reason: Lost) => void>()
  const closed = Promise.withResolvers<Lost | undefined>()
  let lost: Lost | undefined
  let isEnding = false
  let onIdle = () => {}
  let [lastArrival, lastAnswer] = [0, 0]

  function lose(reason: Lost, isOurs = false): void {
    if (lost !== undefined) return
    lost = reason
    server().disconnect(backend)
    for (const reject of inFlight) reject(reason)
    closed.resolve(isOurs ? undefined : reason)
  }

  /** Plans a step that does not overtake an earlier one in the same direction. */
  function inOrder(after: number, label: string, run: () => void, of: Actor): number {
    const at = Math.max(after, world().now() + weather.travelMs())
    plan(at - world().now(), label, run, of)
    return at
  }

  function send(text: string, values: readonly unknown[]): Promise<Rows> {
    return new Promise((resolve, reject) => {
      if (lost !== undefined) throw lost
      if (isEnding) throw new Lost('CLOSED')
      inFlight.add(reject)
      // The connection breaks before the statement arrives, or after that.
      const fate = weather.isLost() ? world().oneOf(['before', 'after']) : undefined
      if (fate !== undefined) {
        plan(weather.travelMs(), 'a connection breaks', () => lose(new Lost('ECONNRESET')))
      }
      if (fate === 'before') return
      const finish = (settle: () => void) => {
        const arrive = () => {
          inFlight.delete(reject)
          if (inFlight.size === 0) onIdle()
          if (lost === undefined) settle()
        }
        lastAnswer = inOrder(lastAnswer, 'an answer arrives', arrive, process)
      }
      const arrive = () =>
        backend.run(text, values).then(
          (rows) => finish(() => resolve(rows)),
          (error) => finish(() => reject(error)),
        )
      lastArrival = inOrder(lastArrival, 'a statement arrives', arrive, server().actor)
    })
  }

  const sql = buildSql(
    async ({ text, values = [] }) => {
      const rows = await send(text, values)
      return { rows, rowCount: rows.count ?? rows.length } as unknown as QueryResult
    },
    () => 0,
  )
  const destroy = () => lose(new Lost('CLOSED'), true)
  try {
    await withTimeout(requirePrimary(sql), connectTimeoutMs)
  } catch (error) {
    destroy()
    throw error
  }
  return {
    sql,
    closed: closed.promise,
    async end(graceMs) {
      isEnding = true
      const idle = new Promise<void>((resolve) => {
        onIdle = resolve
        if (inFlight.size === 0) resolve()
      })
      await withTimeout(idle, graceMs).catch(() => {})
      destroy()
    },
    destroy,
  }
}
