import assert from 'node:assert/strict'
import { dirname, join } from 'node:path'
import { before, describe, it } from 'node:test'
import { openPrimary } from '../../src/store/postgres/primary.ts'
import { newFolder } from '../support/folder.ts'
import {
  newCluster,
  type PostgresServer,
  password,
  query,
  startServer,
} from '../support/postgres.ts'
import { startTlsServer } from '../support/postgres-tls.ts'
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

  it('is reached by its folder, as a parameter and percent-encoded as the host', async () => {
    const { port } = server
    const folder = dirname(server.folder)
    const urls = [
      `postgres://plants:${secret}@/postgres?host=${folder}&port=${port}&sslmode=verify-full`,
      `postgres://plants:${secret}@${encodeURIComponent(folder)}:${port}/postgres`,
    ]
    for (const [index, url] of urls.entries()) {
      const store = await openPostgresStore(url)
      const plant = { id: BigInt(index), name: 'Aloe' }
      assert.equal(typeof (await store.createPlant(plant)), 'bigint')
      assert.equal((await store.getPlant(plant.id))?.name, 'Aloe')
      await store.close()
    }
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

describe('a server that speaks TLS at once', () => {
  it('is reached with sslnegotiation=direct, and its certificate is checked', async (test) => {
    await using tls = await startTlsServer()
    await tls.createDatabase('plants')
    const [server] = await query<{ version: string }>(
      tls.toUrl('plants'),
      "SELECT current_setting('server_version_num') AS version",
    )
    if (Number(server?.version) < 170_000) return test.skip('PostgreSQL has it since release 17')
    const direct = { sslnegotiation: 'direct', sslmode: 'verify-full' }
    const url = tls.toUrl('plants', { ...direct, sslrootcert: tls.authorityFile })
    const store = await openPostgresStore(url)
    await store.createPlant({ id: 1n, name: 'Aloe' })
    const encrypted = `SELECT count(*)::int AS count FROM pg_stat_ssl JOIN pg_stat_activity USING (pid)
      WHERE application_name = 'plant-store' AND ssl`
    const [row] = await query<{ count: number }>(tls.toUrl('plants'), encrypted)
    assert.ok(row !== undefined && row.count > 0)
    await store.close()
    await tls.present({ names: ['other.example'], addresses: [] })
    await assert.rejects(
      openPrimary(url, quiet, { startTimeoutMs: 0 }),
      /is for another host than the one/,
    )
  })
})
