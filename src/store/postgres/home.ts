import { codeOf } from './failures.ts'
import type { Sql } from './pools.ts'
import { inTransaction } from './session.ts'

// Undefined function or no right to call it: some hosts do not tell which server it is.
const untold = ['42501', '42883', '0A000']

/**
 * Pauses the receivers of a database that came from a dump or a template: the original may still
 * send to them. A standby that took over is the same server.
 */
export async function pauseIfCopied(sql: Sql): Promise<void> {
  const home = await identifyDatabase(sql)
  const [before] = await sql<[{ home: string | null }]>`
    SELECT home FROM plant_store.receiver_revision`
  if (home === undefined || before.home === home) return
  await inTransaction(sql, async () => {
    const { count } = await sql`
      UPDATE plant_store.receiver_revision SET home = ${home}, revision = revision + 1
      WHERE home IS NOT DISTINCT FROM ${before.home}`
    if (count === 0 || before.home === null) return
    await sql`UPDATE plant_store.receivers SET state = 'paused', lease_owner = NULL,
        reason = 'the database was copied or moved'
      WHERE state = 'active'`
  })
}

/** The server and the database in it; undefined if the server does not tell. */
async function identifyDatabase(sql: Sql): Promise<string | undefined> {
  try {
    const [row] = await sql<[{ server: string; database: number }]>`
      SELECT system_identifier AS server, oid AS database
      FROM pg_catalog.pg_control_system(), pg_catalog.pg_database
      WHERE datname = pg_catalog.current_database()`
    return `${row.server}/${row.database}`
  } catch (error) {
    if (untold.includes(codeOf(error))) return undefined
    throw error
  }
}
