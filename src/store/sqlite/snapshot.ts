import { randomUUID } from 'node:crypto'
import type { DatabaseSync } from 'node:sqlite'
import type { Snapshot } from '../store.ts'
import { toRefusal } from './failures.ts'
import { openDatabase } from './open-database.ts'
import { buildPlantStatements } from './plants.ts'
import { buildTokenStatements } from './tokens.ts'

/** How many plants of a walk are read at once. */
const pageSize = 1_000

/** A snapshot that others can end. Further reads fail with the reason. */
export interface EndableSnapshot extends Snapshot {
  end(reason: Error): void
}

/**
 * Opens a second connection, which sees the store as of its first read. Later changes stay in the
 * WAL until it is closed.
 */
export function openSnapshot(db: DatabaseSync): EndableSnapshot {
  const reader = openReader(db)
  try {
    // The first read fixes the moment.
    reader.exec('BEGIN; SELECT 1 FROM plants LIMIT 1')
  } catch (error) {
    reader.close()
    throw error
  }
  const plants = buildPlantStatements(reader)
  const tokens = buildTokenStatements(reader)
  let endedBy: Error | undefined

  async function read<Value>(run: () => Value): Promise<Value> {
    if (endedBy !== undefined) throw endedBy
    try {
      return run()
    } catch (error) {
      throw toRefusal(error)
    }
  }

  function close(): void {
    if (reader.isOpen) reader.close()
  }

  return {
    countPlants: (tag) => read(() => plants.count(tag)),
    async *walkPlants({ after, tag, limit }) {
      let last = after
      for (let left = limit; left > 0; ) {
        const wanted = Math.min(pageSize, left)
        const from = last
        const page = await read(() => plants.list({ after: from, tag, limit: wanted }))
        if (page.plants.length > 0) yield page.plants
        if (page.isWhole && page.plants.length < wanted) return
        left -= page.plants.length
        last = page.plants.at(-1)?.id
      }
    },
    listTokens: () => read(tokens.list),
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
