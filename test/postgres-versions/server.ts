import assert from 'node:assert/strict'
import { it } from 'node:test'
import { findServer } from '../support/databases.ts'
import { query } from '../support/postgres.ts'

const wanted = process.env.TEST_POSTGRES_VERSION ?? ''

it(`the server of this run is PostgreSQL ${wanted}`, async (test) => {
  const url = `${await findServer()}postgres`
  const [row] = await query<{ version: string }>(url, 'SELECT version()')
  test.diagnostic(row?.version ?? '')
  assert.ok(row?.version.startsWith(`PostgreSQL ${wanted}.`), row?.version)
})
