import type { BatcherMeasures, StoreMeasures } from '../store.ts'
import type { Session, Sql } from './session.ts'

type ServerMeasures = Pick<StoreMeasures, 'sizes' | 'fsyncSeconds'>

/** A scrape does not wait for a server that is slow: its part is left out then. */
const serverTimeoutMs = 1_000
const unknown: ServerMeasures = { sizes: [], fsyncSeconds: [] }
/** From this version on, the server counts syncs of its log with all other I/O. */
const countsAllIo = 180_000

export async function measureStore(
  session: Session | undefined,
  { queuedItems: queuedWrites, ...measured }: BatcherMeasures,
): Promise<StoreMeasures> {
  const server = session?.lookUps.run(askServer, serverTimeoutMs).catch(() => unknown)
  return {
    isUp: session !== undefined,
    queuedWrites,
    ...measured,
    // The server is asked to commit once for each batch, and nothing else is waited for.
    commitSeconds: [['server', measured.batchSeconds]],
    ...((await server) ?? unknown),
  }
}

/**
 * The size of all tables with their indexes, for which the server asks its file system and reads
 * no row, and the syncs of its log, if it times them.
 */
async function askServer(sql: Sql): Promise<ServerMeasures> {
  const [row] = await sql<[{ bytes: string; is_timed: boolean; version: string }]>`
    SELECT pg_catalog.sum(pg_catalog.pg_total_relation_size(oid)) AS bytes,
           pg_catalog.current_setting('track_wal_io_timing') = 'on' AS is_timed,
           pg_catalog.current_setting('server_version_num') AS version
    FROM pg_catalog.pg_class
    WHERE relnamespace = 'plant_store'::regnamespace AND relkind = 'r'`
  return {
    sizes: [['data', Number(row.bytes)]],
    fsyncSeconds: row.is_timed ? [['server', await readSyncs(sql, Number(row.version))]] : [],
  }
}

/** How many syncs there were and how long all of them took: a histogram without bounds. */
async function readSyncs(sql: Sql, version: number) {
  const [row] = await sql<[{ syncs: string; ms: number }]>`${
    version >= countsAllIo
      ? sql`SELECT pg_catalog.sum(fsyncs) AS syncs, pg_catalog.sum(fsync_time) AS ms
          FROM pg_catalog.pg_stat_io WHERE object = 'wal'`
      : sql`SELECT wal_sync AS syncs, wal_sync_time AS ms FROM pg_catalog.pg_stat_wal`
  }`
  return { bounds: [], counts: [Number(row.syncs)], sum: row.ms / 1000 }
}
