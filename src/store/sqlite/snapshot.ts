import { randomUUID } from 'node:crypto'
import { DatabaseSync } from 'node:sqlite'
import type { Snapshot } from '../store.ts'
import { toRefusal } from './failures.ts'
import { buildPlantStatements } from './plants.ts'
import { buildTokenStatements } from './tokens.ts'

/** A second connection that keeps reading what the first moment of its transaction shows; the log holds what comes after. */
export function openSnapshot(db: DatabaseSync): Snapshot {
  const reader = openReader(db)
  // The first read settles the moment.
  reader.exec('BEGIN; SELECT 1 FROM plants LIMIT 1')
  const plants = buildPlantStatements(reader)
  const tokens = buildTokenStatements(reader)

  async function read<Value>(run: () => Value): Promise<Value> {
    try {
      return run()
    } catch (error) {
      throw toRefusal(error)
    }
  }

  return {
    countPlants: (tag) => read(() => plants.count(tag)),
    listPlants: (query) => read(() => plants.list(query)),
    listTokens: () => read(tokens.list),
    async close() {
      reader.close()
    },
  }
}

function openReader(db: DatabaseSync): DatabaseSync {
  const path = db.location()
  if (path !== null) return new DatabaseSync(path, { readOnly: true, readBigInts: true })
  // Nobody else can connect to a database in memory: a copy of it does as well.
  const name = `file:snapshot-${randomUUID()}?mode=memory&cache=shared`
  const copy = new DatabaseSync(name, { readBigInts: true })
  db.exec(`VACUUM INTO '${name}'`)
  return copy
}
