import assert from 'node:assert/strict'
import { once } from 'node:events'
import { describe, it } from 'node:test'
import postgres from 'postgres'
import { buildSockets } from '../../src/store/postgres/sockets.ts'
import { withTimeout } from '../../src/store/postgres/timeout.ts'
import { engines } from '../support/engines.ts'
import { query } from '../support/postgres.ts'
import { startTlsServer } from '../support/postgres-tls.ts'
import { authorized, startService } from '../support/service.ts'
import { waitUntil } from '../support/wait.ts'
import { openSocket, toBytes } from '../support/wire.ts'

const postgresql = engines.find(({ name }) => name === 'PostgreSQL') as (typeof engines)[number]
const rounds = 20
const exportRequest = toBytes({
  path: '/plants.ndjson',
  headers: { ...authorized, 'Accept-Encoding': 'identity' },
})

/** Begins an export and goes away after its first bytes. */
async function breakOff(url: string): Promise<void> {
  for (;;) {
    const socket = openSocket(url)
    socket.write(exportRequest)
    const [bytes] = await once(socket, 'data')
    socket.destroy()
    await once(socket, 'close')
    const [, status] = /^HTTP\/1\.1 (\d+) /.exec(String(bytes)) ?? []
    if (status === '200') return
    // The service may not have noticed yet that the exports before were broken off.
    assert.equal(status, '503')
  }
}

/** Resolves when no connection of an export is left in this database. */
function untilNoExportIsLeft(url: string): Promise<void> {
  const left = `SELECT FROM pg_stat_activity
    WHERE datname = current_database() AND query LIKE 'COPY%'`
  return waitUntil(async () => (await query(url, left)).length === 0, 'no export is left')
}

describe('exports that their clients break off', () => {
  async function breakOffMany(url: string): Promise<void> {
    const service = await startService(url)
    await query(
      url,
      `INSERT INTO plant_store.plants
       SELECT id, repeat('x', 1000), NULL, 1 FROM generate_series(1, 8000) AS id`,
    )
    for (let round = 0; round < rounds; round++) await breakOff(service.url)
    await untilNoExportIsLeft(url)
    assert.equal((await service.call({ path: '/plants?limit=1' })).status, 200)
    await service.close()
  }

  it('give every connection back to PostgreSQL', async () => {
    await breakOffMany(await postgresql.newUrl())
  })

  it('give every connection back over TLS', async () => {
    await using tls = await startTlsServer()
    await tls.createDatabase('plants')
    await breakOffMany(tls.toUrl('plants', { sslmode: 'require' }))
  })

  it('leave no socket behind over TLS', async () => {
    await using tls = await startTlsServer()
    const at = { host: '127.0.0.1', port: tls.server.port }
    const sockets = buildSockets({ at, tls: { rejectUnauthorized: false }, timeoutMs: 10_000 })
    const sql = postgres(tls.toUrl('postgres'), {
      max: 3,
      ssl: false,
      socket: sockets.open,
    } as object)
    await Promise.all([1, 2, 3].map((value) => sql`SELECT pg_sleep(0.1), ${value}::int`))
    assert.equal(sockets.size(), 3)
    await sql.end()
    await withTimeout(sockets.untilEmpty(), 10_000)
    assert.equal(sockets.size(), 0)
  })
})
