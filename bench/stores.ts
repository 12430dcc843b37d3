/** Large stores, filled quickly: our schema, with rows that the engine itself generates. */
import { DatabaseSync } from 'node:sqlite'
import { openStore, type StoreLocation, toStoreLocation } from '../src/store/open.ts'
import { query } from '../test/support/postgres.ts'
import { firstSeedId } from './requests.ts'

const rowsPerStatement = 500_000

/** Creates a store with this many plants. */
export async function fillStore(
  url: string,
  count: number,
  progress: (text: string) => void,
): Promise<void> {
  const location = toStoreLocation(url) as StoreLocation
  const store = await openStore(location)
  await store.close()
  const { run, finish } = openEngine(location)
  for (let done = 0; done < count; done += rowsPerStatement) {
    const percent = Math.round((done / count) * 100)
    progress(`filling a store with ${count.toLocaleString('en')} plants: ${percent} %`)
    await run(firstSeedId + done, firstSeedId + Math.min(count, done + rowsPerStatement) - 1)
  }
  await finish()
}

interface Engine {
  run(first: number, last: number): Promise<void>
  finish(): Promise<void>
}

function openEngine(location: StoreLocation): Engine {
  return location.engine === 'sqlite' ? openSqlite(location.path) : openPostgres(location.url)
}

function openSqlite(path: string): Engine {
  const db = new DatabaseSync(path)
  db.exec('PRAGMA synchronous = OFF; PRAGMA cache_size = -200000')
  return {
    async run(first, last) {
      db.exec(`
        WITH RECURSIVE ids (id) AS (
          SELECT ${first} UNION ALL SELECT id + 1 FROM ids WHERE id < ${last}
        )
        INSERT INTO plants (id, name, tag, version)
        SELECT id, 'Monstera deliciosa', 'tag ' || (10 + id % 50),
          random() >> 1 & 0x7fffffffffffffff
        FROM ids`)
    },
    async finish() {
      db.exec('PRAGMA wal_checkpoint(TRUNCATE)')
      db.close()
    },
  }
}

function openPostgres(url: string): Engine {
  return {
    async run(first, last) {
      await query(
        url,
        `INSERT INTO plant_store.plants (id, name, tag, version)
         SELECT id, 'Monstera deliciosa', 'tag ' || (10 + id % 50), (random() * 9e18)::bigint
         FROM generate_series(${first}, ${last}) AS id`,
      )
    },
    // Maintenance runs now, not during the measurement.
    async finish() {
      await query(url, 'VACUUM ANALYZE')
      await query(url, 'CHECKPOINT')
    },
  }
}
