import { separate } from '../receivers.ts'
import { type Journaling, type Migration, type StoreEvents, UnusableStore } from '../store.ts'
import { chooseSteps, requireKnown, schemaVersion, toMigration } from '../tables.ts'
import { codeOf, Lost, standby } from './failures.ts'
import { isSequenceBehind, raiseSequence, setJournaling } from './journal.ts'
import { upgrades } from './migrations.ts'
import { inTransaction, runSteps, type Sql } from './sql.ts'

const oldestServer = 150_000
/** The advisory lock under which one process migrates while the others wait: "plst". */
const migrationLock = 0x706c7374

/**
 * Throws unless the server is a primary that accepts writes, with `pg_catalog` first in its search
 * path.
 */
export async function requirePrimary(sql: Sql): Promise<void> {
  const [{ is_standby, readonly, schemas }] = await sql<
    [{ is_standby: boolean; readonly: string; schemas: string }]
  >`
    SELECT pg_catalog.pg_is_in_recovery() AS is_standby,
      pg_catalog.current_setting('transaction_read_only') AS readonly,
      pg_catalog.current_schemas(TRUE)::pg_catalog.text AS schemas`
  if (is_standby) throw new Lost(standby)
  if (readonly === 'on') {
    throw new UnusableStore(
      'PostgreSQL makes the transactions of the user of DATABASE_URL read-only: ' +
        'reset default_transaction_read_only (ALTER ROLE, ALTER DATABASE or ALTER SYSTEM).',
    )
  }
  // PostgreSQL never looks up functions and operators in the temporary schema.
  if (/^\{(pg_temp_\d+,)?pg_catalog[,}]/.test(schemas)) return
  throw new UnusableStore(
    'The search_path of the user of DATABASE_URL names pg_catalog after another schema, so that ' +
      'functions of other users could be called: ' +
      'take pg_catalog out of it (ALTER ROLE … SET search_path).',
  )
}

/** Prepares a store for this process, or creates it. Refuses a server that cannot hold it. */
export async function prepareStore(
  sql: Sql,
  { onNew, onMigrated }: StoreEvents,
  journaling: Journaling,
): Promise<void> {
  await requireServer(sql)
  try {
    const isCurrent = (await readVersion(sql)) === schemaVersion
    const migration = isCurrent ? undefined : await migrate(sql, onNew)
    await requirePrivileges(sql)
    if (migration !== undefined) onMigrated?.(migration)
  } catch (error) {
    throw ['42501', '25006'].includes(codeOf(error)) ? readOnly(error) : error
  }
  await renewIfCopied(sql)
  await setJournaling(sql, journaling)
}

/** Throws `UnusableStore` unless the release and the encoding of the server are usable. */
export async function requireServer(sql: Sql): Promise<void> {
  const [server] = await sql<[{ version: string; encoding: string }]>`
    SELECT pg_catalog.current_setting('server_version_num') AS version,
           pg_catalog.current_setting('server_encoding') AS encoding`
  if (Number(server.version) < oldestServer) {
    throw new UnusableStore('DATABASE_URL names a PostgreSQL older than 15: use 15 or newer.')
  }
  if (server.encoding !== 'UTF8') {
    throw new UnusableStore(
      `The database of DATABASE_URL has the encoding ${server.encoding}: ` +
        "create one with ENCODING 'UTF8'.",
    )
  }
}

/** The version of the schema; 0 if there is none. */
export async function readVersion(sql: Sql): Promise<number> {
  // Asks the catalogue, because after the wait for the lock the server may still resolve the name
  // as it did before.
  const [found] = await sql<[{ exists: boolean }]>`
    SELECT EXISTS (SELECT FROM pg_catalog.pg_tables
      WHERE schemaname = 'plant_store' AND tablename = 'schema_version') AS exists`
  if (!found.exists) return 0
  const [row] = await sql<[{ version: number }]>`SELECT version FROM plant_store.schema_version`
  return row.version
}

/** Brings the schema up to date. Returns the migration if the store is of an older release. */
async function migrate(sql: Sql, onNew?: () => void): Promise<Migration | undefined> {
  let from = 0
  let startedAt = 0
  await inTransaction(sql, async () => {
    // All of this ends with the transaction, so it also works behind a pooler.
    await sql`SET LOCAL search_path = pg_catalog`
    await sql`SET LOCAL standard_conforming_strings = on`
    // A large store takes minutes, and so does the wait for another process that migrates it.
    await sql`SET LOCAL statement_timeout = 0`
    await sql`SET LOCAL lock_timeout = 0`
    await sql`SELECT pg_catalog.pg_advisory_xact_lock(${migrationLock})`
    startedAt = performance.now()
    from = await readVersion(sql)
    requireKnown(from, 'The database')
    if (from === 0) onNew?.()
    for (const step of chooseSteps(upgrades, from)) await sql.script(step)
    await sql`UPDATE plant_store.schema_version SET version = ${schemaVersion}`
  })
  return toMigration(from, startedAt)
}

/** The privileges that the service needs, and on which tables. */
const privileges = {
  SELECT:
    'plants keys tokens token_revision receivers deliveries receiver_revision journal journal_life',
  INSERT: 'plants keys tokens receivers deliveries journal',
  UPDATE: 'plants keys tokens token_revision receivers deliveries receiver_revision journal_life',
  DELETE: 'plants keys tokens receivers deliveries journal',
}

export async function requirePrivileges(sql: Sql): Promise<void> {
  const needed = Object.entries(privileges).flatMap(([privilege, tables]) =>
    tables.split(' ').map((table) => [`plant_store.${table}`, privilege] as const),
  )
  const tables = needed.map(([table]) => table)
  const names = needed.map(([, privilege]) => privilege)
  const [row] = await sql<[{ are_granted: boolean }]>`
    SELECT pg_catalog.bool_and(pg_catalog.has_table_privilege(tables.name, privilege))
      AND pg_catalog.has_sequence_privilege('plant_store.journal_seq', 'USAGE') AS are_granted
    FROM unnest(${tables}::text[], ${names}::text[]) AS tables(name, privilege)`
  if (!row.are_granted) throw readOnly()
}

function readOnly(cause?: unknown): UnusableStore {
  return new UnusableStore(
    'The user of DATABASE_URL may not write to the database: grant it CREATE on the database, ' +
      'or all privileges on the schema plant_store and its tables.',
    { cause },
  )
}

// The function is missing or not permitted: some hosted servers do not reveal their identity.
const unavailableCodes = ['42501', '42883', '0A000']

/**
 * Prepares a database that was copied from a dump or a template, or moved by logical replication,
 * as a restore does on SQLite: the journal gets a new id, so that positions of the original do not
 * match, and receivers are paused, because the original may still send to them. A promoted standby
 * has the identity of its primary.
 *
 * A sequence that is behind is as sure a sign as another identity. A process that does not look for
 * it may have written rows with low numbers, which followers and receivers have not seen.
 */
async function renewIfCopied(sql: Sql): Promise<void> {
  const identity = await identifyDatabase(sql)
  const [before] = await sql<[{ home: string | null }]>`
    SELECT home FROM plant_store.receiver_revision`
  const home = identity ?? before.home
  if (before.home === home && !(await isSequenceBehind(sql))) return
  await inTransaction(sql, async () => {
    const isMoved = await raiseSequence(sql)
    const { count } = await sql`
      UPDATE plant_store.receiver_revision SET home = ${home}, revision = revision + 1
      WHERE home IS NOT DISTINCT FROM ${before.home}`
    const isCopied = count > 0 && before.home !== null && before.home !== home
    if (!isMoved && !isCopied) return
    await runSteps(sql, separate('the database was copied or moved'))
  })
}

/** Identifies the server and the database; undefined if the server does not tell. */
async function identifyDatabase(sql: Sql): Promise<string | undefined> {
  try {
    const [row] = await sql<[{ server: string; database: number }]>`
      SELECT system_identifier AS server, oid AS database
      FROM pg_catalog.pg_control_system(), pg_catalog.pg_database
      WHERE datname = pg_catalog.current_database()`
    return `${row.server}/${row.database}`
  } catch (error) {
    if (unavailableCodes.includes(codeOf(error))) return undefined
    throw error
  }
}
