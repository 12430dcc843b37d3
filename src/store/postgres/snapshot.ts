import { unreachable } from '../failures.ts'
import type { Snapshot } from '../store.ts'
import { toReadFailure } from './failures.ts'
import { countPlants } from './pages.ts'
import type { Session } from './session.ts'
import { withTimeout } from './timeout.ts'
import { tokenStatements } from './tokens.ts'
import { walkPlants } from './walk.ts'

/** Opens a transaction on its own connection. It keeps the view of its first statement. */
export async function openSnapshot(session: Session, answerTimeoutMs: number): Promise<Snapshot> {
  let isLost = false
  const { sql, close } = session.openAlone(() => {
    isLost = true
  })

  async function read<Value>(
    run: () => Promise<Value>,
    timeoutMs = answerTimeoutMs,
  ): Promise<Value> {
    // The driver would connect again and continue outside the transaction.
    if (isLost) throw unreachable()
    try {
      return await (timeoutMs === Number.POSITIVE_INFINITY ? run() : withTimeout(run(), timeoutMs))
    } catch (error) {
      // Its answer may still come: nothing more is asked on this connection.
      isLost = true
      throw toReadFailure(error)
    }
  }

  try {
    await read(() => sql`BEGIN ISOLATION LEVEL REPEATABLE READ, READ ONLY`)
    await read(() => sql`SELECT FROM plant_store.plants LIMIT 1`)
  } catch (error) {
    await close()
    throw error
  }
  return {
    countPlants: (tag) => read(() => countPlants(sql, tag), Number.POSITIVE_INFINITY),
    async *walkPlants(query) {
      if (isLost) throw unreachable()
      try {
        yield* walkPlants(sql, query, { answerTimeoutMs, isLost: () => isLost })
      } catch (error) {
        isLost = true
        throw toReadFailure(error)
      }
    },
    listTokens: () => read(() => tokenStatements.list(sql)),
    close,
  }
}
