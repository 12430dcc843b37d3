import assert from 'node:assert/strict'
import { once } from 'node:events'
import { describe, it } from 'node:test'
import type { VersionedPlant } from '../../src/store/store.ts'
import { postgres } from '../support/engines.ts'
import { query } from '../support/postgres.ts'
import { startTlsServer } from '../support/postgres-tls.ts'
import { releaseAfterTest } from '../support/release.ts'
import { authorized, startService } from '../support/service.ts'
import { openPostgresStore } from '../support/stores.ts'
import { waitUntil } from '../support/wait.ts'
import { openSocket, toBytes } from '../support/wire.ts'

const rounds = 20
const count = 8_000
const everything = { after: undefined, tag: undefined, limit: Number.POSITIVE_INFINITY }
const exportRequest = toBytes({
  path: '/plants.ndjson',
  headers: { ...authorized, 'Accept-Encoding': 'identity' },
})

/** Fills a store with more plants than sockets and buffers hold. */
async function fill(url: string): Promise<void> {
  await query(
    url,
    `INSERT INTO plant_store.plants
     SELECT id, repeat('x', 1000), NULL, 1 FROM generate_series(1, ${count}) AS id`,
  )
}

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
    await fill(url)
    for (let round = 0; round < rounds; round++) await breakOff(service.url)
    await untilNoExportIsLeft(url)
    assert.equal((await service.call({ path: '/plants?limit=1' })).status, 200)
    await service.close()
  }

  it('give every connection back to PostgreSQL', async () => {
    await breakOffMany(await postgres.newUrl())
  })

  it('give every connection back over TLS', async () => {
    await using tls = await startTlsServer()
    await tls.createDatabase('plants')
    await breakOffMany(tls.toUrl('plants', { sslmode: 'require' }))
  })
})

describe('a walk through plants whose reader is slow', () => {
  for (const encryption of ['plain', 'TLS'] as const) {
    it(`delays no other read, and goes on to its end (${encryption})`, async () => {
      await using tls = await startTlsServer()
      await tls.createDatabase('plants')
      const sslmode = encryption === 'TLS' ? 'require' : 'disable'
      const store = await openPostgresStore(tls.toUrl('plants', { sslmode }))
      await fill(tls.toUrl('plants'))
      const snapshot = await store.openSnapshot()
      releaseAfterTest(snapshot.close)
      const pieces: (readonly VersionedPlant[])[] = []
      for await (const piece of snapshot.walkPlants(everything)) {
        pieces.push(piece)
        assert.equal((await store.listPlants({ ...everything, limit: 1 })).plants.length, 1)
        assert.equal((await store.getPlant(1n))?.id, 1n)
      }
      const ids = pieces.flat().map(({ id }) => id)
      assert.deepEqual(
        ids,
        Array.from({ length: count }, (_, index) => BigInt(index + 1)),
      )
      assert.ok(pieces.length > 1 && pieces.every(({ length }) => length < count / 2))
      // The connection still answers, and has nothing left of the walk.
      assert.equal(await snapshot.countPlants(undefined), count)
      // Of some of these walks, the end comes together with more than the reader has room for.
      for (let limit = 1; limit < 130; limit += 2) {
        const walked = await Array.fromAsync(snapshot.walkPlants({ ...everything, limit }))
        assert.equal(walked.flat().length, limit)
        assert.equal((await snapshot.listTokens()).length, 0)
      }
    })
  }

  it('fails what follows in its snapshot when the reader leaves before the end', async () => {
    const url = await postgres.newUrl()
    const store = await openPostgresStore(url)
    await fill(url)
    const snapshot = await store.openSnapshot()
    releaseAfterTest(snapshot.close)
    for await (const piece of snapshot.walkPlants(everything)) {
      assert.notEqual(piece.length, 0)
      break
    }
    await assert.rejects(snapshot.countPlants(undefined), { number: 50301 })
    await untilNoExportIsLeft(url)
  })
})
