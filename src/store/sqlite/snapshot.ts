import { randomUUID } from 'node:crypto'
import type { DatabaseSync } from 'node:sqlite'
import { walTooLarge } from '../failures.ts'
import type { Snapshot } from '../store.ts'
import { listTokens } from '../token-steps.ts'
import { read } from './failures.ts'
import { readSize } from './file.ts'
import { openDatabase } from './open-database.ts'
import { buildPlantStatements } from './plants.ts'
import { buildStepRunner } from './steps.ts'

/**
 * SQLite cannot reset the WAL while a snapshot reads from it, so it grows with the writes during
 * overlapping exports. Above the first size no snapshot is opened; above the second the oldest
 * ends, unless the WAL was already as large when it was opened.
 */
export interface WalBounds {
  readonly refuseBytes: number
  readonly endBytes: number
}

export const defaultWalBounds: WalBounds = {
  refuseBytes: 64 * 1024 * 1024,
  endBytes: 256 * 1024 * 1024,
}

/** How often the size of the WAL is checked while a snapshot is open. */
const pollMs = 200

/** Opens snapshots while the WAL is small, and ends the oldest if it grows too large. */
export function buildSnapshotOpener(db: DatabaseSync, { refuseBytes, endBytes }: WalBounds) {
  const path = db.location()
  let snapshots: (EndableSnapshot & { readonly maxWalBytes: number })[] = []
  let timer: NodeJS.Timeout | undefined

  function walBytes(): number {
    return path === null ? 0 : readSize(`${path}-wal`)
  }

  function check(): void {
    forgetClosed()
    const [oldest] = snapshots
    if (oldest !== undefined && walBytes() > oldest.maxWalBytes) oldest.end(walTooLarge())
  }

  function forgetClosed(): void {
    snapshots = snapshots.filter(({ isOpen }) => isOpen())
    if (snapshots.length > 0) return
    clearInterval(timer)
    timer = undefined
  }

  return (): Snapshot => {
    forgetClosed()
    if (snapshots.length > 0 && walBytes() > refuseBytes) throw walTooLarge()
    const maxWalBytes = Math.max(endBytes, walBytes())
    const snapshot = { ...openSnapshot(db), maxWalBytes }
    snapshots.push(snapshot)
    timer ??= setInterval(check, pollMs).unref()
    return snapshot
  }
}

/** How many plants of a walk are read at once. */
const pageSize = 1_000

/** A snapshot that others can end. Further reads fail with the reason. */
interface EndableSnapshot extends Snapshot {
  isOpen(): boolean
  end(reason: Error): void
}

/**
 * Opens a second connection, which sees the store as of its first read. Later changes stay in the
 * WAL until it is closed.
 */
function openSnapshot(db: DatabaseSync): EndableSnapshot {
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
  let endedBy: Error | undefined

  async function readOpen<Value>(run: () => Value): Promise<Value> {
    if (endedBy !== undefined) throw endedBy
    return read(run)
  }

  function close(): void {
    if (reader.isOpen) reader.close()
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
        if (page.isWhole && page.plants.length < wanted) return
        left -= page.plants.length
        last = page.plants.at(-1)?.id
      }
    },
    listTokens: () => readOpen(() => runSteps(listTokens())),
    isOpen: () => reader.isOpen,
    end(reason) {
      endedBy = reason
      close()
    },
    async close() {
      close()
    },
  }
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
