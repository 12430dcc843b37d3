/**
 * Stands in for `src/store/postgres/connection.ts`: connections to the simulated server. A
 * statement travels, waits for those before it, runs, and its answer travels back. On the way it
 * may be late, and the connection may be lost: before the server has it, or after that.
 */
import type { Connection } from '../../src/store/postgres/connection.ts'
import { Lost, withTimeout } from '../../src/store/postgres/failures.ts'
import type { Sql, Value } from '../../src/store/postgres/sql.ts'
import { toStatement } from '../../src/store/steps.ts'
import { type Rows, server } from './postgres.ts'
import { requirePrimary } from './schema.ts'
import { type Actor, world } from './world.ts'

const connectTimeoutMs = 2_000

/** Opens a connection of the current process. `onClosed` gets a reason unless it was ours. */
export async function openConnection(
  _address?: unknown,
  _host?: unknown,
  _terms?: unknown,
  onClosed: (reason: Lost | undefined) => void = () => {},
): Promise<Connection> {
  const { plan, actor, pause, chance } = world()
  const process = actor()
  const weather = server().weather
  await pause(weather.travelMs())
  if (!server().isUp() || chance(weather.refused)) throw new Lost('ECONNREFUSED')
  const backend = server().connect(process, (reason) => lose(new Lost(reason)))
  const inFlight = new Set<(reason: Lost) => void>()
  let lost: Lost | undefined
  let isOpen = false
  let onIdle = () => {}
  let [lastArrival, lastAnswer] = [0, 0]

  function lose(reason: Lost, isOurs = false): void {
    if (lost !== undefined) return
    lost = reason
    server().disconnect(backend)
    for (const reject of inFlight) reject(reason)
    if (isOpen) onClosed(isOurs ? undefined : reason)
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
      inFlight.add(reject)
      // The connection breaks before the statement arrives, or after that.
      const fate = chance(weather.lost) ? world().oneOf(['before', 'after']) : undefined
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

  const sql = ((parts: TemplateStringsArray, ...values: Value[]) =>
    send(toStatement(parts), values)) as Sql
  sql.run = (text, values = []) => send(text, values) as never
  sql.texts = (text, values = []) => send(text, values) as never
  sql.warnings = () => 0
  sql.script = () => Promise.reject(new Error('No script is simulated.'))
  const destroy = () => lose(new Lost('CLOSED'), true)
  try {
    await withTimeout(requirePrimary(sql), connectTimeoutMs)
    isOpen = true
  } catch (error) {
    destroy()
    throw error
  }
  return {
    sql,
    copy: () => {
      throw new Error('No COPY is simulated.')
    },
    async end(graceMs) {
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
