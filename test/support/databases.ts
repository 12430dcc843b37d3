import { randomBytes } from 'node:crypto'
import type { Client } from 'pg'
import { newCluster, openClient, query, startServer } from './postgres.ts'
import { releaseAfterFile, releaseAfterTest } from './release.ts'

/** Databases that are empty again: to empty one costs a fifth of making one. */
const empty: string[] = []

/** The URL of an empty database on the server of the tests. It is emptied with the test. */
export async function newDatabase(): Promise<string> {
  const url = empty.pop() ?? (await createDatabase())
  releaseAfterTest(async () => {
    if (await clear(url)) empty.push(url)
  })
  return url
}

/** A new database, of which every connection has these settings unless it asks for others. */
export async function newDatabaseWith(settings: Readonly<Record<string, string>>): Promise<string> {
  const url = await newDatabase()
  const database = `ALTER DATABASE ${new URL(url).pathname.slice(1)}`
  const texts = Object.entries(settings).map(
    ([name, value]) => `${database} SET ${name} = ${value}`,
  )
  await query(url, texts.join(';'))
  releaseAfterTest(() => query(url, `${database} RESET ALL`))
  return url
}

async function createDatabase(): Promise<string> {
  const name = `plants_${randomBytes(6).toString('hex')}`
  const admin = await openAdmin()
  await admin.query(`CREATE DATABASE ${name} STRATEGY FILE_COPY`)
  return (await findServer()) + name
}

/** Removes the store from a database. Answers whether nothing else is left in it. */
async function clear(url: string): Promise<boolean> {
  const client = await openClient(url)
  try {
    await client.query(endOthers)
    await client.query('DROP SCHEMA IF EXISTS plant_store CASCADE')
    return (await client.query(leftovers)).rows.length === 0
  } finally {
    await client.end()
  }
}

const endOthers = `
  SELECT pg_catalog.pg_terminate_backend(pid) FROM pg_catalog.pg_stat_activity
  WHERE datname OPERATOR(pg_catalog.=) pg_catalog.current_database()
    AND pid OPERATOR(pg_catalog.<>) pg_catalog.pg_backend_pid()`

/** Objects have numbers above 16383 unless they come with the server. */
const leftovers = `
  SELECT oid FROM pg_catalog.pg_namespace WHERE oid > 16383
  UNION ALL SELECT oid FROM pg_catalog.pg_class WHERE oid > 16383
  UNION ALL SELECT oid FROM pg_catalog.pg_proc WHERE oid > 16383
  UNION ALL SELECT oid FROM pg_catalog.pg_type WHERE oid > 16383
  UNION ALL SELECT oid FROM pg_catalog.pg_operator WHERE oid > 16383
  UNION ALL SELECT setdatabase FROM pg_catalog.pg_db_role_setting WHERE setdatabase <> 0`

let admin: Promise<Client> | undefined

function openAdmin(): Promise<Client> {
  admin ??= (async () => {
    const client = await openClient(`${await findServer()}postgres`)
    releaseAfterFile(() => client.end())
    return client
  })()
  return admin
}

let ownServer: Promise<string> | undefined

/** The server that the whole run shares, or one that this file starts when it runs alone. */
export async function findServer(): Promise<string> {
  // An async function: after a wait for a promise of another test, the runner takes that test for
  // the current one.
  const { TEST_POSTGRES_URL } = process.env
  if (TEST_POSTGRES_URL) return TEST_POSTGRES_URL
  ownServer ??= (async () => {
    const server = await startServer(await newCluster(), { fsync: 'off' })
    releaseAfterFile(server.stop)
    return server.toUrl('')
  })()
  return ownServer
}
