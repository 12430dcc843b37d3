import {
  examineClock,
  examineSchema,
  examineTokens,
  ok,
  toDo,
  type Verdict,
  type Verdicts,
} from '../finding.ts'
import { UnusableStore } from '../store.ts'
import { schemaVersion } from '../tables.ts'
import { toAddress } from './address.ts'
import { toUnusable } from './failures.ts'
import { isSequenceBehind } from './journal.ts'
import { readVersion, requirePrivileges, requireServer } from './prepare.ts'
import { openSession } from './primary.ts'
import type { Sql } from './sql.ts'

/** A larger clock difference noticeably changes the lifetime of tokens. */
const clockToleranceMs = 2_000
const maxUsedShare = 0.8
const readTimeoutMs = 5_000

type Setting = 'fsync' | 'full_page_writes' | 'synchronous_commit' | 'max_connections'
type Settings = Readonly<Record<Setting | 'name' | 'connections' | 'now', string>>

/** Examines a database and the server that it is on, without changing anything. */
export async function examineServer(url: string, password?: string): Promise<Verdicts> {
  const address = toAddress(url, password)
  const session = await openSession(address, readTimeoutMs).catch((error) => {
    throw toUnusable(error, address.hosts)
  })
  try {
    return await examine(session.writers[0] as Sql)
  } finally {
    await session.end(0)
  }
}

async function examine(sql: Sql): Promise<Verdicts> {
  const [server] = await sql<[Settings]>`
    SELECT pg_catalog.current_setting('server_version') AS name,
           pg_catalog.current_setting('fsync') AS fsync,
           pg_catalog.current_setting('full_page_writes') AS full_page_writes,
           pg_catalog.current_setting('synchronous_commit') AS synchronous_commit,
           pg_catalog.current_setting('max_connections') AS max_connections,
           (SELECT pg_catalog.count(datid) FROM pg_catalog.pg_stat_activity) AS connections,
           (extract(epoch FROM pg_catalog.clock_timestamp()) * 1000)::bigint AS now`
  const version = await readVersion(sql)
  return {
    PostgreSQL: await attempt(server.name, requireServer(sql)),
    syncs: examineSyncs(server),
    connections: examineConnections(server),
    schema: examineSchema(version),
    // Nobody knows the tables of a newer release.
    ...(version > 0 && version <= schemaVersion && (await examineTables(sql, version, server))),
  }
}

/** A requirement that is not met is a warning. */
async function attempt(message: string, requirement: Promise<void>): Promise<Verdict> {
  try {
    await requirement
    return ok(message)
  } catch (error) {
    if (error instanceof UnusableStore) return toDo(error.message)
    throw error
  }
}

function examineSyncs(server: Settings): Verdict {
  const off = (['fsync', 'full_page_writes', 'synchronous_commit'] as const).filter(
    (name) => server[name] === 'off',
  )
  if (off.length === 0) return ok(`synchronous_commit = ${server.synchronous_commit}`)
  return toDo(`${off.join(' and ')} off: a crash loses plants; switch on in the server`)
}

function examineConnections({ connections, max_connections }: Settings): Verdict {
  const text = `${connections} of ${max_connections} are in use`
  if (Number(connections) < maxUsedShare * Number(max_connections)) return ok(text)
  return toDo(`${text}: raise max_connections, or use a pooler`)
}

async function examineTables(sql: Sql, version: number, server: Settings) {
  const now = Date.now()
  const tokens = await sql`SELECT name, expires_at, revoked_at FROM plant_store.tokens`
  const common = {
    clock: examineClock(Number(server.now), now, clockToleranceMs),
    tokens: examineTokens(tokens, now),
  }
  // An older schema does not have all the tables yet.
  if (version < schemaVersion) return common
  const privileges = await attempt('all that the service needs', requirePrivileges(sql))
  if (privileges.state === 'to do') return { privileges, ...common }
  return { privileges, journal: await examineJournal(sql), ...common }
}

/** Reports a move by logical replication after which no process has started yet. */
async function examineJournal(sql: Sql): Promise<Verdict> {
  if (!(await isSequenceBehind(sql))) return ok('new changes come after all others')
  return toDo(
    'its sequence is behind, as after logical replication, so that followers would miss new ' +
      'changes: start the service, which raises it',
  )
}
