import { setImmediate as endOfTurn } from 'node:timers/promises'
import type { Worker } from 'node:worker_threads'
import { openConnection } from '../../../src/store/sqlite/connection.ts'
import { buildSqliteStore } from '../../../src/store/sqlite/store.ts'
import type { Store } from '../../../src/store/store.ts'
import { findWriterLocation } from '../../support/writer-location.ts'

/** What a store did on a disk that became slow and then fast again. */
export interface SlowDiskReport {
  /** Where it committed first, and after how many commits it moved, if it did. */
  readonly first: 'in place' | 'thread'
  /** After how many commits each of two threads was started: the first one dies. */
  readonly commitsUntilThreads: readonly number[]
  readonly commitsUntilInPlace: number | undefined
  /** How long a small batch was delayed after a slow one with more writes. */
  readonly delayMs: number | undefined
  /** The order of the answers to a slow create and a get after it. */
  readonly answers: string[]
  readonly created: number
  readonly stored: number
}

const maxSlowCommits = 1_000
const maxFastCommits = 100_000

async function run(path: string): Promise<SlowDiskReport> {
  const store = buildSqliteStore(openConnection(path))
  let created = 0n
  const look = () => findWriterLocation(store, created++)
  const first = await look()
  const workers: Worker[] = []
  process.on('worker', (worker) => workers.push(worker))
  setSyncMs(5)
  const commitsUntilThreads: number[] = []
  for (const number of [1, 2]) {
    await workers.at(-1)?.terminate()
    let commits = 0
    for (; workers.length < number && commits < maxSlowCommits; commits++) await look()
    commitsUntilThreads.push(commits)
    await countUntil('thread', look, maxSlowCommits)
  }
  setSyncMs(200)
  await Promise.all([created++, created++, created++].map((id) => create(store, id)))
  const delayMs = await findDelay(() => create(store, created++))
  setSyncMs(2_000)
  const answers = await race(store, created++)
  setSyncMs(0)
  const commitsUntilInPlace = await countUntil('in place', look, maxFastCommits)
  const all = { after: undefined, tag: undefined, limit: Number(created) + 1 }
  const stored = (await store.listPlants(all)).plants.length
  await store.close()
  return {
    first,
    commitsUntilThreads,
    commitsUntilInPlace,
    delayMs,
    answers,
    created: Number(created),
    stored,
  }
}

async function create(store: Store, id: bigint): Promise<void> {
  await store.createPlant({ id, name: 'x' })
}

/** Runs something, and answers the longest time for which it sets a timer. */
async function findDelay(run: () => Promise<void>): Promise<number | undefined> {
  const real = globalThis.setTimeout
  const delays: number[] = []
  globalThis.setTimeout = ((callback: () => void, ms: number) => {
    delays.push(ms)
    return real(callback, ms)
  }) as typeof setTimeout
  try {
    await run()
  } finally {
    globalThis.setTimeout = real
  }
  return delays.length === 0 ? undefined : Math.max(...delays)
}

function setSyncMs(syncMs: number): void {
  process.env.DISK_SYNC_MS = String(syncMs)
}

async function countUntil(
  wanted: 'in place' | 'thread',
  look: () => Promise<'in place' | 'thread'>,
  max: number,
): Promise<number | undefined> {
  for (let count = 1; count <= max; count++) if ((await look()) === wanted) return count
}

async function race(store: Store, id: bigint): Promise<string[]> {
  const answers: string[] = []
  const created = create(store, id).then(() => answers.push('create'))
  // The batch begins at the end of the turn.
  await endOfTurn()
  await endOfTurn()
  await store.getPlant(0n)
  answers.push('get')
  await created
  return answers
}

// Runs as a process of its own, with the shim.
const path = process.argv[2]
if (import.meta.main && path !== undefined) console.log(JSON.stringify(await run(path)))
