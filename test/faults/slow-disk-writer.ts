import { setImmediate as endOfTurn } from 'node:timers/promises'
import { openConnection } from '../../src/store/sqlite/connection.ts'
import { buildSqliteStore } from '../../src/store/sqlite/store.ts'
import type { Store } from '../../src/store/store.ts'
import { findWriterLocation } from '../support/writer-location.ts'

/** What a store did on a disk that became slow and quick again. Runs as a process of its own, with the shim. */
export interface SlowDiskReport {
  /** Where it committed first, and how many commits later it did so elsewhere; undefined if it never did. */
  readonly first: 'in place' | 'thread'
  readonly commitsUntilThread: number | undefined
  readonly commitsUntilInPlace: number | undefined
  /** What was answered first while a commit took long: a get behind it, or the create itself. */
  readonly answers: string[]
  readonly created: number
  readonly stored: number
}

const maxSlowCommits = 200
const maxQuickCommits = 20_000

async function run(path: string): Promise<SlowDiskReport> {
  const store = buildSqliteStore(openConnection(path))
  let created = 0n
  const look = () => findWriterLocation(store, created++)
  const first = await look()
  setSyncMs(5)
  const commitsUntilThread = await countUntil('thread', look, maxSlowCommits)
  setSyncMs(900)
  const answers = await race(store, created++)
  setSyncMs(0)
  const commitsUntilInPlace = await countUntil('in place', look, maxQuickCommits)
  const all = { after: undefined, tag: undefined, limit: Number(created) + 1 }
  const stored = (await store.listIds(all)).length
  await store.close()
  return {
    first,
    commitsUntilThread,
    commitsUntilInPlace,
    answers,
    created: Number(created),
    stored,
  }
}

function setSyncMs(syncMs: number): void {
  process.env.DISK_SYNC_MS = String(syncMs)
}

async function countUntil(
  wanted: 'in place' | 'thread',
  look: () => Promise<'in place' | 'thread'>,
  most: number,
): Promise<number | undefined> {
  for (let count = 1; count <= most; count++) if ((await look()) === wanted) return count
}

async function race(store: Store, id: bigint): Promise<string[]> {
  const answers: string[] = []
  const created = store.createPlant({ id, name: 'x' }).then(() => answers.push('create'))
  // The batch is under way when the turn is over.
  await endOfTurn()
  await endOfTurn()
  await store.getPlant(0n)
  answers.push('get')
  await created
  return answers
}

const path = process.argv[2]
if (import.meta.main && path !== undefined) console.log(JSON.stringify(await run(path)))
