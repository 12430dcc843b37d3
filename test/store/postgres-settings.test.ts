import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { type Store, toPlant, type VersionedPlant } from '../../src/store/store.ts'
import { postgres } from '../support/engines.ts'
import { openClient, query } from '../support/postgres.ts'
import { releaseAfterTest } from '../support/release.ts'
import { openPostgresStore } from '../support/stores.ts'
import { newTokenRecord } from '../support/token-record.ts'
import { waitUntil } from '../support/wait.ts'
import { readPage } from './journal-pages.ts'

const anyState = { match: undefined, noneMatch: undefined }

/** A new database, of which every connection has these settings unless it asks for others. */
async function newUrlWith(settings: Readonly<Record<string, string>>): Promise<string> {
  const url = await postgres.newUrl()
  const name = new URL(url).pathname.slice(1)
  for (const [setting, value] of Object.entries(settings)) {
    await query(url, `ALTER DATABASE ${name} SET ${setting} = ${value}`)
  }
  return url
}

async function readExport(store: Store): Promise<VersionedPlant[]> {
  const snapshot = await store.openSnapshot('token')
  const plants: VersionedPlant[] = []
  const query = { after: undefined, tag: undefined, limit: Number.POSITIVE_INFINITY }
  for await (const some of snapshot.walkPlants(query)) plants.push(...some)
  await snapshot.close()
  return plants
}

describe('a PostgreSQL with other defaults', () => {
  const plants = [
    { id: -(2n ** 63n), name: 'no tag' },
    { id: 1n, name: 'NULL', tag: 'NULL' },
    { id: 2n, name: '', tag: '' },
    { id: 3n, name: "\\ ' \\' \\x00 {,}", tag: 'C:\\new' },
    { id: 4n, name: '仙人掌 🌵 é', tag: 'ü' },
  ]

  for (const [setting, value] of [
    ['default_transaction_isolation', "'repeatable read'"],
    ['default_transaction_isolation', 'serializable'],
    ['standard_conforming_strings', 'off'],
    ['array_nulls', 'off'],
    ['bytea_output', 'escape'],
    ['client_encoding', 'LATIN1'],
    ['DateStyle', "'German, DMY'"],
    ['TimeZone', "'Asia/Kathmandu'"],
    ['extra_float_digits', '-15'],
    ['transform_null_equals', 'on'],
    ['enable_indexscan', 'off'],
  ] as const) {
    it(`is a store for several processes: ${setting} = ${value}`, async () => {
      const url = await newUrlWith({ [setting]: value })
      const [one, two] = await Promise.all([postgres.open(url), postgres.open(url)])
      const firsts = [one, two].map((store) => store.addFirstToken(newTokenRecord()))
      assert.deepEqual((await Promise.all(firsts)).toSorted(), ['added', 'not first'])
      const [token] = await two.listTokens()
      assert.deepEqual(token && (await one.findToken(token.hash)), token)

      await one.importPlants(plants.slice(0, 2), 'keep')
      for (const plant of plants.slice(2)) {
        const key = { tokenId: 'token', key: String(plant.id) }
        const made = await Promise.all([one, two].map((store) => store.createPlantOnce(plant, key)))
        const versions = made.map((outcome) => typeof outcome === 'object' && outcome.version)
        assert.equal(new Set(versions).size, 1)
      }
      for (const plant of plants) {
        const { version, ...stored } = (await two.getPlant(plant.id)) as VersionedPlant
        assert.deepEqual(stored, plant)
        const page = { after: undefined, tag: plant.tag, limit: 10 }
        const same = plants.filter(({ tag }) => plant.tag === undefined || tag === plant.tag)
        assert.deepEqual((await one.listPlants(page)).plants, same)
        const condition = { match: [version], noneMatch: undefined }
        const changes = [one, two].map((store) => store.replacePlant(plant, condition))
        const kinds = (await Promise.all(changes)).map((made) =>
          typeof made === 'object' ? made.kind : made,
        )
        assert.deepEqual(kinds.toSorted(), ['condition failed', 'replaced'])
      }
      const exported = (await readExport(two)).map(({ version: _, ...plant }) => plant)
      assert.deepEqual(exported, plants)
      const { events } = await readPage(two)
      assert.deepEqual(events.slice(0, 5).map(toPlant), plants)
      assert.equal(events.length, 10)
    })
  }

  it('records every change after the journal was switched on beside it', async () => {
    const url = await newUrlWith({ default_transaction_isolation: "'repeatable read'" })
    const store = await openPostgresStore(url, { journaling: 'off' })
    await store.createPlant({ id: 1n, name: 'there' })
    const blocker = await openClient(url)
    releaseAfterTest(() => blocker.end())
    await blocker.query('BEGIN; LOCK TABLE plant_store.plants IN ROW EXCLUSIVE MODE')
    const switching = openPostgresStore(url, { journaling: 'on' })
    // Other tests use the same server.
    const waiting = `SELECT FROM pg_locks WHERE NOT granted
      AND database = (SELECT oid FROM pg_database WHERE datname = current_database())`
    const countWaiting = async () => (await query(url, waiting)).length
    await waitUntil(async () => (await countWaiting()) === 1, 'the switch waits')
    const replacing = store.replacePlant({ id: 1n, name: 'new' }, anyState)
    const creating = store.createPlant({ id: 2n, name: 'new' })
    await waitUntil(async () => (await countWaiting()) > 1, 'a change waits for the switch')
    await blocker.query('COMMIT')
    await Promise.all([replacing, creating])
    const { events } = await readPage(await switching)
    assert.equal(events.length, 2)
  })

  it('leaves a write open that no standby confirmed, though warnings are off', async () => {
    const url = await newUrlWith({ client_min_messages: 'error' })
    const store = await postgres.open(url)
    await query(
      url,
      `CREATE FUNCTION plant_store.warn() RETURNS trigger LANGUAGE plpgsql AS
        $$ BEGIN RAISE WARNING 'canceling wait for synchronous replication'; RETURN NULL; END $$;
      CREATE TRIGGER warn AFTER INSERT ON plant_store.plants EXECUTE FUNCTION plant_store.warn()`,
    )
    await assert.rejects(async () => store.createPlant({ id: 1n, name: '' }), { number: 50400 })
  })

  it('keeps the connections of a store that is idle', async () => {
    const url = await newUrlWith({ idle_session_timeout: '200' })
    const store = await postgres.open(url)
    // The server ends this connection, which is idle for as long as those of the store.
    const other = await openClient(url)
    let isEnded = false
    other.once('end', () => {
      isEnded = true
    })
    await waitUntil(() => isEnded, 'the server ends idle connections')
    await store.ping()
    assert.equal(typeof (await store.createPlant({ id: 1n, name: '' })), 'bigint')
  })

  for (const setting of ['statement_timeout', 'transaction_timeout']) {
    it(`does not cut an export that takes longer than ${setting}`, async (test) => {
      const direct = await postgres.newUrl()
      if ((await query(direct, `SELECT FROM pg_settings WHERE name = '${setting}'`)).length === 0) {
        return test.skip('this release does not have it')
      }
      const filled = await postgres.open(direct)
      const ids = Array.from({ length: 30 }, (_, index) => BigInt(index))
      const name = 'x'.repeat(900_000)
      for (const id of ids) await filled.createPlant({ id, name })
      await filled.close()
      const timeout = 500
      await query(
        direct,
        `ALTER DATABASE ${new URL(direct).pathname.slice(1)} SET ${setting} = ${timeout}`,
      )
      const store = await postgres.open(direct)
      const snapshot = await store.openSnapshot('token')
      releaseAfterTest(snapshot.close)
      const all = { after: undefined, tag: undefined, limit: Number.POSITIVE_INFINITY }
      const read: bigint[] = []
      for await (const plants of snapshot.walkPlants(all)) {
        if (read.length === 0) await waitUntil(isLate, 'the export has taken longer than that')
        read.push(...plants.map(({ id }) => id))
      }
      assert.deepEqual(read, ids)

      async function isLate(): Promise<boolean> {
        const late = `SELECT FROM pg_stat_activity WHERE query LIKE 'COPY%' AND datname =
          current_database() AND query_start < clock_timestamp() - interval '${timeout * 2} ms'`
        return (await query(direct, late)).length > 0
      }
    })
  }
})
