import { type Batched, type BatcherBounds, buildBatcher, defaultBounds } from '../batcher.ts'
import type { Caller } from '../caller.ts'
import { callerLeft, unreachable } from '../failures.ts'
import { rowBytes } from '../held-bytes.ts'
import type { VersionedPlant } from '../store.ts'
import type { Connection } from './connection.ts'
import { toReadFailure } from './failures.ts'
import { findPlants } from './plants.ts'
import { lookUpConnections, type Sql } from './session.ts'

/** Plants that are requested at the same time share a query, and a few queries run at a time. */
const lookUpBounds: BatcherBounds = {
  ...defaultBounds,
  batchItems: 64,
  batchesInFlight: lookUpConnections,
}

interface LookUp extends Batched {
  readonly id: bigint
  readonly arrivedAt: number
  caller: Caller | undefined
}

/** The reads of plants and tokens. One whose caller has left is dropped or cancelled. */
export function buildReads(connection: Connection, answerTimeoutMs: number) {
  const lookUps = buildBatcher(lookUp, lookUpBounds)

  async function lookUp(asked: LookUp[]): Promise<(VersionedPlant | undefined)[]> {
    // Counted from the arrival of the first, so that a queue does not add up its waits.
    const waitedMs = performance.now() - (asked[0]?.arrivedAt ?? 0)
    const ids = asked.filter(({ caller }) => !caller?.destroyed).map(({ id }) => id)
    if (ids.length === 0) throw callerLeft()
    const callers = toOneCaller(asked)
    const run = (sql: Sql) => findPlants(sql, ids)
    try {
      const found = await read('lookUps', run, callers, answerTimeoutMs - waitedMs)
      return asked.map(({ id }) => found.get(id))
    } finally {
      // The driver holds on to old queries for a while: they must not hold requests.
      for (const one of asked) one.caller = undefined
    }
  }

  async function read<Value>(
    lane: 'lookUps' | 'pages',
    run: (sql: Sql) => Promise<Value>,
    caller?: Caller,
    timeoutMs = answerTimeoutMs,
  ): Promise<Value> {
    const session = connection.session()
    if (session === undefined) throw unreachable()
    try {
      return await session[lane].run(run, timeoutMs, caller)
    } catch (error) {
      throw toReadFailure(error)
    }
  }

  function getPlant(id: bigint, caller?: Caller): Promise<VersionedPlant | undefined> {
    return lookUps.submit({ id, caller, bytes: rowBytes, arrivedAt: performance.now() })
  }

  return { read, getPlant }
}

/** Stands for all callers of a batch: they have left when each of them has. */
function toOneCaller(asked: readonly LookUp[]): Caller {
  return {
    get destroyed() {
      return asked.every(({ caller }) => caller?.destroyed)
    },
  }
}
