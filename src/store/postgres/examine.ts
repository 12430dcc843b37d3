import {
  examineClock,
  examineSchema,
  examineTokens,
  type Finding,
  ok,
  type TokenEnd,
  warning,
} from '../finding.ts'
import { UnusableStore } from '../store.ts'
import { toAddress } from './address.ts'
import { toUnusable } from './failures.ts'
import { isSequenceBehind } from './journal.ts'
import { migrations } from './migrations.ts'
import { oldestServer, readVersion, requirePrivileges } from './schema.ts'
import { openSession } from './session.ts'
import type { Sql } from './sql.ts'

/** A larger clock difference noticeably changes the lifetime of tokens. */
const clockToleranceMs = 2_000
const maxUsedShare = 0.8
const readTimeoutMs = 5_000

interface Settings {
  readonly version: string
  readonly name: string
  readonly encoding: string
  readonly fsync: string
  readonly full_page_writes: string
  readonly synchronous_commit: string
  readonly connections: string
  readonly max_connections: string
  readonly now: string
}

/** Examines a database and the server that it is on, without changing anything. */
export async function examineServer(url: string): Promise<Finding[]> {
  const address = toAddress(url)
  const session = await openSession(address, readTimeoutMs).catch((error) => {
    throw toUnusable(error, address.hosts)
  })
  try {
    return await examine(session.writers[0] as Sql)
  } finally {
    await session.end(0)
  }
}

async function examine(sql: Sql): Promise<Finding[]> {
  const [server] = await sql<[Settings]>`
    SELECT pg_catalog.current_setting('server_version_num') AS version,
           pg_catalog.current_setting('server_version') AS name,
           pg_catalog.current_setting('server_encoding') AS encoding,
           pg_catalog.current_setting('fsync') AS fsync,
           pg_catalog.current_setting('full_page_writes') AS full_page_writes,
           pg_catalog.current_setting('synchronous_commit') AS synchronous_commit,
           pg_catalog.current_setting('max_connections') AS max_connections,
           (SELECT pg_catalog.count(datid) FROM pg_catalog.pg_stat_activity) AS connections,
           (extract(epoch FROM pg_catalog.clock_timestamp()) * 1000)::bigint AS now`
  const schema = await readVersion(sql).catch(toNewerSchema)
  const findings = [examineRelease(server), examineSyncs(server), examineConnections(server)]
  if (typeof schema !== 'number') return [...findings, schema]
  if (schema === 0)
    return [...findings, warning('schema', 'no store was made here yet: run "serve"')]
  const now = Date.now()
  const tokens = await sql<TokenEnd[]>`
    SELECT name, expires_at, revoked_at FROM plant_store.tokens`
  return [
    ...findings,
    examineSchema(schema, migrations.length),
    ...(await examineTables(sql, schema)),
    examineClock(Number(server.now), now, clockToleranceMs),
    examineTokens(tokens, now),
  ]
}

/** Reports the schema of a newer release, which `readVersion` refuses. */
function toNewerSchema(error: unknown): Finding {
  if (error instanceof UnusableStore) return warning('schema', error.message)
  throw error
}

function examineRelease({ version, name, encoding }: Settings): Finding {
  if (Number(version) < oldestServer) return warning('PostgreSQL', `${name}: use 15 or newer`)
  if (encoding !== 'UTF8')
    return warning('PostgreSQL', `the encoding is ${encoding}: it must be UTF8`)
  return ok('PostgreSQL', name)
}

function examineSyncs(server: Settings): Finding {
  const off = (['fsync', 'full_page_writes', 'synchronous_commit'] as const).filter(
    (name) => server[name] === 'off',
  )
  if (off.length === 0) return ok('syncs', `synchronous_commit = ${server.synchronous_commit}`)
  return warning('syncs', `${off.join(' and ')} off: a crash loses plants; switch on in the server`)
}

function examineConnections({ connections, max_connections }: Settings): Finding {
  const text = `${connections} of ${max_connections} are in use`
  if (Number(connections) < maxUsedShare * Number(max_connections)) return ok('connections', text)
  return warning('connections', `${text}: raise max_connections, or use a pooler`)
}

async function examineTables(sql: Sql, schema: number): Promise<Finding[]> {
  const subject = 'privileges'
  // An older schema does not have all the tables yet.
  if (schema < migrations.length) return [ok(subject, 'examined by the next "serve"')]
  try {
    await requirePrivileges(sql)
    return [ok(subject, 'all that the service needs'), await examineJournal(sql)]
  } catch (error) {
    if (error instanceof UnusableStore) return [warning(subject, error.message)]
    throw error
  }
}

/** Reports a move by logical replication after which no process has started yet. */
async function examineJournal(sql: Sql): Promise<Finding> {
  const subject = 'journal'
  if (!(await isSequenceBehind(sql))) return ok(subject, 'new changes come after all others')
  return warning(
    subject,
    'its sequence is behind, as after logical replication, so that followers would miss new ' +
      'changes: start the service, which raises it',
  )
}
