import { setTimeout as sleep } from 'node:timers/promises'
import { type Change, type Create, type Import, recordChanges } from '../changes.ts'
import type { ImportOutcome } from '../store.ts'
import { isConflict, toWriteFailure } from './failures.ts'
import { insertAllOrNone, loadRows } from './plants.ts'
import { inTransaction, type Sql } from './sql.ts'

/** A write that waits for its batch. */
export interface PostgresWrite<One extends Change = Change> {
  readonly change: One
  readonly arrivedAt: number
  /** A write whose caller has timed out must not be sent any more. */
  state: 'waiting' | 'sent' | 'given up'
}

type Outcomes = Map<PostgresWrite, unknown>

/** Sends a batch in the cheapest way that its changes allow. */
export function sendWrites(sql: Sql, writes: PostgresWrite[]): Promise<Outcomes> {
  if (writes.every(isCreate)) return createAll(sql, writes)
  const [write] = writes
  const isAlone = writes.length === 1 && write !== undefined
  return isAlone && isImport(write) ? importAll(sql, write) : runAll(sql, writes)
}

function isCreate(write: PostgresWrite): write is PostgresWrite<Create> {
  return write.change.kind === 'create'
}

function isImport(write: PostgresWrite): write is PostgresWrite<Import> {
  return write.change.kind === 'import'
}

/**
 * Sends plain creates as one statement, and retries without those whose ids are taken. Of several
 * creates with one id the first wins.
 */
async function createAll(sql: Sql, writes: PostgresWrite<Create>[]): Promise<Outcomes> {
  const firsts = new Map<bigint, PostgresWrite<Create>>()
  for (const write of writes) {
    const { id } = write.change.plant
    if (!firsts.has(id)) firsts.set(id, write)
  }
  for (;;) {
    const creates = [...firsts.values()].map(({ change }) => change)
    const taken = await insertAllOrNone(sql, creates)
    if (taken.length === 0) break
    for (const id of taken) firsts.delete(id)
  }
  return new Map(
    writes.map((write) => {
      const { id, version } = write.change.plant
      return [write, firsts.get(id) === write ? version : 'exists']
    }),
  )
}

/** Sends an import as one statement, if no id is taken or repeated. */
async function importAll(sql: Sql, write: PostgresWrite<Import>): Promise<Outcomes> {
  const { plants, tokenId } = write.change
  if (new Set(plants.map(({ id }) => id)).size < plants.length) return runAll(sql, [write])
  const creates = plants.map((plant) => ({ plant, tokenId }))
  const taken = await insertAllOrNone(sql, creates)
  if (taken.length > 0) return runAll(sql, [write])
  return new Map([[write, plants.map((): ImportOutcome => 'stored')]])
}

/** Applies any writes: locks and reads the rows, changes them in memory, and writes them back. */
function runAll(sql: Sql, writes: PostgresWrite[]): Promise<Outcomes> {
  return inTransaction(sql, async () => {
    const ids = new Set(writes.flatMap(({ change }) => toIds(change)))
    const keys = writes.flatMap(({ change }) => ('key' in change ? change.key : []))
    const rows = await loadRows(sql, ids, keys)
    const recorder = recordChanges(rows)
    const outcomes = new Map(writes.map((write) => [write, recorder.apply(write.change)]))
    await rows.save(sql, recorder.take())
    return outcomes
  })
}

function toIds(change: Change): bigint[] {
  if (change.kind === 'delete') return [change.id]
  return 'plant' in change ? [change.plant.id] : change.plants.map(({ id }) => id)
}

/** Processes that write the same ids conflict repeatedly before each has succeeded. */
const maxAttempts = 20
const backoffMs = 10

/** Retries a write after a conflict. */
export async function attemptWrite<Value>(run: () => Promise<Value>): Promise<Value> {
  for (let count = 1; ; count++) {
    try {
      return await run()
    } catch (error) {
      if (!isConflict(error) || count === maxAttempts) throw toWriteFailure(error)
      // Random backoff, so that the two do not conflict again.
      await sleep(Math.random() * count * backoffMs)
    }
  }
}
