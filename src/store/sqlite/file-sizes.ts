import { statSync } from 'node:fs'
import type { DatabaseSync } from 'node:sqlite'
import type { StoreMeasures } from '../store.ts'

/** The sizes of the database and of its log. A database in memory has none. */
export function readSizes(db: DatabaseSync): StoreMeasures['sizes'] {
  const path = db.location()
  if (path === null) return []
  return [
    ['data', readSize(path)],
    ['log', readSize(`${path}-wal`)],
  ]
}

// A file that cannot be looked at, such as a log that does not exist yet, counts as empty.
function readSize(path: string): number {
  return statSync(path, { throwIfNoEntry: false })?.size ?? 0
}
