import { setTimeout as sleep } from 'node:timers/promises'
import { type Change, type Rows, recordChanges } from '../changes.ts'
import { isConflict, toWriteFailure } from './failures.ts'
import { loadIds, loadLocked, loadNothing } from './plants.ts'
import { inTransaction, type Sql } from './sql.ts'

/** A write that waits for its batch. */
export interface PostgresWrite {
  readonly change: Change
  readonly arrivedAt: number
  /** A write whose caller has timed out must not be sent any more. */
  state: 'waiting' | 'sent' | 'given up'
}

type Outcomes = Map<PostgresWrite, unknown>

/**
 * Sends a batch that only adds plants as one statement, as if no id and no key were taken; creates
 * without a key also a second time, without the ids that are. Any other batch, and one that does
 * not fit, becomes a transaction: it locks and reads the rows, changes them in memory, and writes
 * them back.
 */
export async function sendWrites(sql: Sql, writes: PostgresWrite[]): Promise<Outcomes> {
  const changes = writes.map(({ change }) => change)
  const ids = new Set(changes.flatMap(toIds))
  const keys = changes.flatMap((change) => ('key' in change ? change.key : []))
  for (const load of listLoads(changes)) {
    const rows = await load(sql, ids, keys)
    const { outcomes, journalRow } = applyAll(rows, writes)
    if (journalRow === undefined || (await rows.insertAll(sql, journalRow))) return outcomes
  }
  return inTransaction(sql, async () => {
    const rows = await loadLocked(sql, ids, keys)
    const { outcomes, journalRow } = applyAll(rows, writes)
    await rows.save(sql, journalRow)
    return outcomes
  })
}

const additions: ReadonlySet<Change['kind']> = new Set(['create', 'create once', 'import'])

/** What to insert a batch beside, in turn. */
function listLoads(changes: readonly Change[]) {
  if (changes.every(({ kind }) => kind === 'create')) return [loadNothing, loadIds]
  // An import compares its plants with those that are there. The replay of a key has to lock its
  // plant: then its commit waits for a standby that does not have the plant yet.
  return changes.every(({ kind }) => additions.has(kind)) ? [loadNothing] : []
}

function applyAll(rows: Rows, writes: PostgresWrite[]) {
  const recorder = recordChanges(rows)
  const outcomes: Outcomes = new Map(writes.map((write) => [write, recorder.apply(write.change)]))
  return { outcomes, journalRow: recorder.take() }
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
