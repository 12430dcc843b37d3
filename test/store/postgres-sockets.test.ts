import assert from 'node:assert/strict'
import { dirname, join } from 'node:path'
import { before, describe, it } from 'node:test'
import { openPrimary } from '../../src/store/postgres/primary.ts'
import { newFolder } from '../support/folder.ts'
import { newCluster, type PostgresServer, password, startServer } from '../support/postgres.ts'
import { releaseAfterTest } from '../support/release.ts'
import { openPostgresStore } from '../support/stores.ts'

const quiet = { onLost() {}, onFound() {} }
const secret = encodeURIComponent(password)

describe('a server on a Unix socket', () => {
  let server: PostgresServer
  before(async () => {
    server = await startServer(await newCluster(), { fsync: 'off', listen_addresses: '' })
    releaseAfterTest(server.stop)
  })

  it('is reached by its folder, without TLS', async () => {
    const at = `host=${dirname(server.folder)}&port=${server.port}`
    const store = await openPostgresStore(
      `postgres://plants:${secret}@/postgres?${at}&sslmode=verify-full`,
    )
    assert.equal(typeof (await store.createPlant({ id: 1n, name: 'Aloe' })), 'bigint')
    assert.equal((await store.getPlant(1n))?.name, 'Aloe')
  })

  it('is missed in one line that names the file of the socket', async () => {
    const folder = newFolder()
    await assert.rejects(
      openPrimary(`postgres:///plants?host=${folder}`, quiet, { startTimeoutMs: 0 }),
      {
        name: 'UnusableStore',
        message:
          `No PostgreSQL server answers at ${join(folder, '.s.PGSQL.5432')} of DATABASE_URL ` +
          '(ENOENT). Check the address, and that it is PostgreSQL.',
      },
    )
  })
})
