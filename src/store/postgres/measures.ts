import type { BatcherMeasures } from '../batcher.ts'
import type { StoreMeasures } from '../store.ts'
import type { Session, Sql } from './session.ts'

/** A scrape does not wait for a server that is slow: the sizes are left out then. */
const sizesTimeoutMs = 1_000

export async function measureStore(
  session: Session | undefined,
  { queuedItems: queuedWrites, ...measured }: BatcherMeasures,
): Promise<StoreMeasures> {
  const sizes = session?.lookUps.run(readSizes, sizesTimeoutMs).catch(() => [])
  return {
    isUp: session !== undefined,
    queuedWrites,
    ...measured,
    // The server is asked to commit once for each batch, and nothing else is waited for.
    commitSeconds: [['server', measured.batchSeconds]],
    sizes: (await sizes) ?? [],
  }
}

/** The size of all tables with their indexes. The server asks its file system, and reads no row. */
async function readSizes(sql: Sql): Promise<StoreMeasures['sizes']> {
  const [row] = await sql<[{ bytes: string }]>`
    SELECT pg_catalog.sum(pg_catalog.pg_total_relation_size(oid)) AS bytes
    FROM pg_catalog.pg_class
    WHERE relnamespace = 'plant_store'::regnamespace AND relkind = 'r'`
  return [['data', Number(row.bytes)]]
}
