import { randomUUID } from 'node:crypto'
import type { DatabaseSync } from 'node:sqlite'
import { Failure } from '../../contract/errors.ts'
import type { Snapshot } from '../store.ts'
import { listTokens } from '../token-steps.ts'
import { buildStepRunner, openDatabase } from './database.ts'
import { read } from './failures.ts'
import { readSize } from './file.ts'
import { buildPlantStatements } from './plants.ts'

/**
 * SQLite cannot reset the WAL while a snapshot reads from it, so it grows with the writes during
 * overlapping exports. Above the first size no snapshot is opened beside another one; above the
 * second they end, unless the WAL was already as large when they were opened.
 */
export const defaultWalBounds = {
  refuseBytes: 64 * 1024 * 1024,
  endBytes: 256 * 1024 * 1024,
}
export type WalBounds = typeof defaultWalBounds

/** How often the size of the WAL is checked while a snapshot is open. */
const pollMs = 200
/** How many plants of a walk are read at once. */
const pageSize = 1_000

/**
 * Opens a second connection, which sees the store as of its first read. Later changes stay in the
 * WAL until it is closed.
 */
export function openSnapshot(
  db: DatabaseSync,
  { refuseBytes, endBytes }: WalBounds,
  othersOpen: number,
): Snapshot {
  const path = db.location()
  const walBytes = () => (path === null ? 0 : readSize(`${path}-wal`))
  if (othersOpen > 0 && walBytes() > refuseBytes) throw logTooLarge()
  const maxWalBytes = Math.max(endBytes, walBytes())
  const reader = openReader(db)
  try {
    // The first read fixes the moment.
    reader.exec('BEGIN; SELECT 1 FROM plants LIMIT 1')
  } catch (error) {
    reader.close()
    throw error
  }
  const plants = buildPlantStatements(reader)
  const runSteps = buildStepRunner(reader)
  const timer = setInterval(() => {
    if (walBytes() > maxWalBytes) close()
  }, pollMs).unref()

  function close(): void {
    clearInterval(timer)
    if (reader.isOpen) reader.close()
  }

  async function readOpen<Value>(run: () => Value): Promise<Value> {
    if (!reader.isOpen) throw logTooLarge()
    return read(run)
  }

  return {
    countPlants: (tag) => readOpen(() => plants.count(tag)),
    async *walkPlants({ after, tag, limit }) {
      let last = after
      for (let left = limit; left > 0; ) {
        const wanted = Math.min(pageSize, left)
        const from = last
        const page = await readOpen(() => plants.list({ after: from, tag, limit: wanted }))
        if (page.plants.length > 0) yield page.plants
        if (page.next === undefined && page.plants.length < wanted) return
        left -= page.plants.length
        last = page.plants.at(-1)?.id
      }
    },
    listTokens: () => readOpen(() => runSteps(listTokens())),
    async close() {
      close()
    },
  }
}

function logTooLarge(): Failure {
  return new Failure(
    50300,
    'The write-ahead log has grown too large because exports are running. Try again when they have ended.',
    { reason: 'log_size' },
  )
}

function openReader(db: DatabaseSync): DatabaseSync {
  const path = db.location()
  if (path !== null) return openDatabase(path, { readOnly: true, readBigInts: true })
  // A database in memory has one connection only, so the snapshot is a copy.
  const name = `file:snapshot-${randomUUID()}?mode=memory&cache=shared`
  const copy = openDatabase(name, { readBigInts: true })
  db.exec(`VACUUM INTO '${name}'`)
  return copy
}
