import { openClient, query } from './postgres.ts'
import { releaseAfterTest, runOnce } from './release.ts'
import { waitUntil } from './wait.ts'

/** Runs a statement in a transaction that is open until it is released or the test ends. */
export async function holdOpen(url: string, statement: string) {
  const client = await openClient(url)
  await client.query(`BEGIN; ${statement}`)
  const release = runOnce(() => client.end())
  releaseAfterTest(release)
  return { query: (text: string) => client.query(text), release }
}

/**
 * Creates a plant in a transaction that has its number of the journal and does not commit yet,
 * beside others that have begun later.
 */
export function holdChange(url: string, id: number) {
  return holdOpen(
    url,
    `INSERT INTO plant_store.plants VALUES (${id}, 'slow', NULL, 1);
    INSERT INTO plant_store.journal
    VALUES (nextval('plant_store.journal_seq'), 0, 7, 1, E'c\\t\\t${id}\\t"slow"')`,
  )
}

/** Resolves when this many statements of stores on a database wait for a lock, or more; or none. */
export function untilWaiting(url: string, count = 1): Promise<void> {
  const waiting = `SELECT FROM pg_stat_activity WHERE datname = current_database()
    AND application_name = 'plant-store' AND wait_event_type = 'Lock'`
  return waitUntil(async () => {
    const { length } = await query(url, waiting)
    return count === 0 ? length === 0 : length >= count
  }, `${count} statements wait for a lock`)
}
