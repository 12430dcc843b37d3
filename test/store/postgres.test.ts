import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { setImmediate } from 'node:timers/promises'
import { withTimeout } from '../../src/store/postgres/failures.ts'
import { openPrimary } from '../../src/store/postgres/primary.ts'
import { type Position, type Store, UnusableStore } from '../../src/store/store.ts'
import { postgres } from '../support/engines.ts'
import { findFreePort, openClient, query, startWithoutStandby } from '../support/postgres.ts'
import { openProxy } from '../support/proxy.ts'
import { releaseAfterTest } from '../support/release.ts'
import { startService } from '../support/service.ts'
import { openPostgresStore as open, type PostgresStoreOptions } from '../support/stores.ts'
import { waitUntil } from '../support/wait.ts'

const quiet = { onLost() {}, onFound() {} }

/** A database behind a cable that can be cut. */
async function openCable() {
  const url = await postgres.newUrl()
  const { hostname, port } = new URL(url)
  const proxy = await openProxy(hostname, Number(port))
  return { url, proxy, proxied: url.replace(`:${port}/`, `:${proxy.port}/`) }
}

type Cable = Awaited<ReturnType<typeof openCable>>

async function openBehindProxy(options?: PostgresStoreOptions) {
  const cable = await openCable()
  return { ...cable, store: await open(cable.proxied, options) }
}

const answers = (store: Store) =>
  store.ping().then(
    () => true,
    () => false,
  )

/** Resolves when a write waits for a lock in the server. */
function waitForLockedWrite(url: string): Promise<void> {
  const locked = "SELECT FROM pg_stat_activity WHERE wait_event_type = 'Lock'"
  const database = 'AND datname = current_database()'
  return waitUntil(
    async () => (await query(url, `${locked} ${database}`)).length > 0,
    'a write waits for the lock',
  )
}

describe('a PostgreSQL that goes away', () => {
  it('is refused at once while it is away, and used again after its return', async () => {
    // Nothing here can be refused because its time for an answer is over.
    const { proxy, store } = await openBehindProxy({ answerTimeoutMs: 600_000 })
    await proxy.cut()
    await waitUntil(async () => !(await answers(store)), 'the store has noticed')
    await assert.rejects(async () => store.createPlant({ id: 1n, name: '' }), { number: 50301 })
    await assert.rejects(async () => store.getPlant(1n), { number: 50301 })
    await proxy.restore()
    await waitUntil(() => answers(store), 'the store is back')
    assert.equal(typeof (await store.createPlant({ id: 1n, name: '' })), 'bigint')
  })

  it('is not away because this process was stopped', async () => {
    const primary = await openPrimary(await postgres.newUrl(), quiet)
    releaseAfterTest(primary.close)
    const [writer] = primary.session()?.writers ?? []
    const answer = withTimeout(writer?.run('SELECT 1 AS one') ?? Promise.reject(), 50)
    await setImmediate()
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 1_000)
    assert.deepEqual([...(await answer)], [{ one: 1 }])
  })

  it('makes the service not ready until it returns', async () => {
    const { proxy, proxied } = await openCable()
    const service = await startService(proxied)
    const readiness = async () => (await service.call({ path: '/readyz' })).status
    assert.equal(await readiness(), 200)
    await proxy.cut()
    await waitUntil(async () => (await readiness()) === 503, 'the service is not ready')
    await proxy.restore()
    await waitUntil(async () => (await readiness()) === 200, 'the service is ready')
    assert.ok(service.log.some((line) => line.includes('the store is away')))
    assert.ok(service.log.some((line) => line.includes('the store is back')))
  })

  it('leaves the outcome of a write open that was sent before', async () => {
    const { url, proxy, store } = await openBehindProxy()
    await postgres.block(url)
    const sent = store.createPlant({ id: 1n, name: '' })
    const outcome = assert.rejects(async () => sent, { number: 50400 })
    await waitForLockedWrite(url)
    await proxy.cut()
    await outcome
  })

  for (const fate of ['cut', 'stallNewest'] as const) {
    it(`ends a walk with a failure, not as if there were no more plants (${fate})`, async () => {
      const { url, proxy, store } = await openBehindProxy({ answerTimeoutMs: 500 })
      await query(
        url,
        `INSERT INTO plant_store.plants
          SELECT id, repeat('x', 1000), NULL, 1 FROM generate_series(1, 20000) AS id`,
      )
      const snapshot = await store.openSnapshot()
      releaseAfterTest(snapshot.close)
      const everything = { after: undefined, tag: undefined, limit: Number.POSITIVE_INFINITY }
      const walk = snapshot.walkPlants(everything)[Symbol.asyncIterator]()
      assert.equal((await walk.next()).done, false)
      await proxy[fate]()
      const readOn = async () => {
        while (!(await walk.next()).done);
      }
      await assert.rejects(readOn, { number: 50301 })
    })
  }

  it('leaves no outcome open of a write that was not sent', async () => {
    const { url, proxy, store } = await openBehindProxy()
    await postgres.block(url)
    const writes = Array.from({ length: 1_100 }, (_, index) =>
      store.createPlantOnce({ id: BigInt(index), name: '' }, { tokenId: 'tok', key: `${index}` }),
    )
    const outcomes = Promise.allSettled(writes)
    await waitForLockedWrite(url)
    await proxy.cut()
    const numbers = (await outcomes).map((one) =>
      one.status === 'rejected' ? one.reason.number : 0,
    )
    // Two batches of 512 are sent.
    assert.deepEqual(numbers, [...Array(1_024).fill(50400), ...Array(76).fill(50301)])
  })

  it('does not end the process in the middle of a transaction', async () => {
    const { url, proxy, store } = await openBehindProxy()
    await store.createPlant({ id: 1n, name: '' })
    for (let round = 0; round < 5; round++) {
      const release = await postgres.block(url)
      const key = { tokenId: 'tok', key: String(round) }
      const writes = [
        store.replacePlant({ id: 1n, name: 'x' }, {}),
        store.deletePlant(2n, {}),
        store.createPlantOnce({ id: BigInt(3 + round), name: 'x' }, key),
      ]
      const outcomes = Promise.allSettled(writes)
      await waitForLockedWrite(url)
      await proxy.cut()
      for (const outcome of await outcomes) {
        assert.ok(outcome.status === 'rejected' && [50400, 50301].includes(outcome.reason.number))
      }
      await release()
      await proxy.restore()
      await waitUntil(() => answers(store), 'the store is back')
    }
  })

  it('lets no write wait longer than the time for an answer, sent or not', async () => {
    const url = await postgres.newUrl()
    const store = await open(url, { answerTimeoutMs: 1_000, batchItems: 1 })
    const release = await postgres.block(url)
    const outcomes = await Promise.allSettled(
      Array.from({ length: 10 }, (_, id) => store.createPlant({ id: BigInt(id), name: '' })),
    )
    const numbers = outcomes.map((outcome) =>
      outcome.status === 'rejected' ? outcome.reason.number : 0,
    )
    // Two batches were with the server; the others had not been sent.
    assert.deepEqual(numbers, [50400, 50400, ...Array(8).fill(50301)])
    await release()
    await waitUntil(async () => (await store.getPlant(1n)) !== undefined, 'the lock is released')
    // A write that was refused as not stored is not sent later.
    assert.equal(typeof (await store.createPlant({ id: 9n, name: 'again' })), 'bigint')
    assert.equal(await store.getPlant(5n), undefined)
  })

  it('ends a start with one line, or not at all, at whichever moment it is lost', async () => {
    const { proxy, proxied } = await openCable()
    const open = () =>
      openPrimary(proxied, quiet, { startTimeoutMs: 100 }).then(
        async (connection) => {
          await connection.close()
          return 'opened'
        },
        (error) => error,
      )
    let outcome: unknown
    // After the first piece of data from the server, after the second, and so on to the last.
    for (let pieces = 1; outcome !== 'opened'; pieces++) {
      assert.ok(pieces < 200, 'the start has no end')
      proxy.cutAfter(pieces)
      outcome = await open()
      assert.ok(outcome === 'opened' || outcome instanceof UnusableStore, String(outcome))
      await proxy.cut()
      await proxy.restore()
    }
  })

  it('is found among several addresses', async () => {
    const url = await postgres.newUrl()
    const { host } = new URL(url)
    const nobody = `127.0.0.1:${await findFreePort()}`
    const store = await open(url.replace(host, `${nobody},${host}`))
    assert.equal(typeof (await store.createPlant({ id: 1n, name: '' })), 'bigint')
  })
})

describe('a PostgreSQL that holds large plants', () => {
  const count = 20
  const name = '\u0001'.repeat(50_000)
  const large = Array.from({ length: count }, (_, index) => ({ id: BigInt(index), name }))

  /** How many bytes the server sends meanwhile, beside its heartbeats. */
  async function measure({ proxy }: Cable, run: () => Promise<unknown>) {
    const before = proxy.receivedBytes()
    await run()
    return proxy.receivedBytes() - before
  }

  it('does not send them to refuse others with their ids', async () => {
    const cable = await openBehindProxy()
    await cable.store.importPlants(large, 'keep')
    const bytes = await measure(cable, async () => {
      const creates = large.map(({ id }) => cable.store.createPlant({ id, name: 'small' }))
      assert.deepEqual(new Set(await Promise.all(creates)), new Set(['exists']))
    })
    assert.ok(bytes < name.length, `${bytes} bytes came`)
  })

  it('sends changes only for the pages that they are on', async () => {
    const cable = await openBehindProxy()
    const { store } = cable
    const rows = 5
    for (let row = 0; row < rows; row++) {
      const ids = Array.from({ length: 100 }, (_, index) => BigInt(1_000 + row * 100 + index))
      await store.importPlants(
        ids.map((id) => ({ id, name: 'x'.repeat(500) })),
        'keep',
      )
    }
    const page = await measure(cable, () => store.readJournal('oldest', 100))
    const all = await measure(cable, () => store.readJournal('oldest', rows * 100))
    assert.ok(page * rows < all * 2, `${page} and ${all} bytes came`)
    await store.importPlants(large, 'keep')
    const end = await store.journalEnd()
    const nothing = await measure(cable, () => store.readJournal(end as Position, 100))
    assert.ok(nothing < name.length, `${nothing} bytes came`)
  })
})

describe('a PostgreSQL that hesitates', () => {
  /** Opens a store on which each insert of plants runs this, before or after it. */
  async function openWithTrigger(event: string, body: string): Promise<Store> {
    const url = await postgres.newUrl()
    const store = await open(url)
    await query(
      url,
      `CREATE FUNCTION plant_store.interfere() RETURNS trigger LANGUAGE plpgsql AS
        $$ BEGIN ${body} RETURN NULL; END $$;
      CREATE TRIGGER interfere ${event} EXECUTE FUNCTION plant_store.interfere()`,
    )
    return store
  }

  it('is asked again a few times when transactions collide', async () => {
    const url = await postgres.newUrl()
    const store = await open(url)
    await query(
      url,
      `CREATE SEQUENCE plant_store.attempts;
      CREATE FUNCTION plant_store.collide() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
        IF nextval('plant_store.attempts') % 3 <> 0 THEN
          RAISE EXCEPTION USING ERRCODE = '40001';
        END IF;
        RETURN NULL; END $$;
      CREATE TRIGGER collide BEFORE INSERT ON plant_store.plants
        EXECUTE FUNCTION plant_store.collide()`,
    )
    assert.equal(typeof (await store.createPlant({ id: 1n, name: '' })), 'bigint')
    await query(
      url,
      `CREATE OR REPLACE FUNCTION plant_store.collide() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
        PERFORM nextval('plant_store.attempts');
        RAISE EXCEPTION USING ERRCODE = '40P01'; END $$;
      SELECT setval('plant_store.attempts', 1, false)`,
    )
    await assert.rejects(async () => store.createPlant({ id: 2n, name: '' }), { number: 50301 })
    const [row] = await query<{ last_value: string }>(
      url,
      'SELECT last_value FROM plant_store.attempts',
    )
    const attempts = Number(row?.last_value)
    assert.ok(attempts > 1 && attempts <= 20, `${attempts} attempts`)
  })

  it('acknowledges no batch of which nothing was inserted, though no id is taken', async () => {
    const store = await openWithTrigger('BEFORE INSERT ON plant_store.plants FOR EACH ROW', '')
    const plants = [1n, 2n].map((id) => ({ id, name: '' }))
    await assert.rejects(async () => store.importPlants(plants, 'keep'), { number: 50301 })
  })

  it('leaves a write open that it commits with a warning of its standby', async () => {
    const store = await openWithTrigger(
      'AFTER INSERT ON plant_store.plants',
      "RAISE WARNING 'canceling wait for synchronous replication';",
    )
    await assert.rejects(async () => store.createPlant({ id: 1n, name: '' }), { number: 50400 })
  })

  it('stores nothing of an import whose second statement fails', async () => {
    const url = await postgres.newUrl()
    const store = await open(url)
    await store.createPlant({ id: 1n, name: 'old' })
    await query(
      url,
      `CREATE FUNCTION plant_store.fill() RETURNS trigger LANGUAGE plpgsql AS
        $$ BEGIN RAISE EXCEPTION USING ERRCODE = '53100'; END $$;
      CREATE TRIGGER fill BEFORE UPDATE ON plant_store.plants
        EXECUTE FUNCTION plant_store.fill()`,
    )
    const plants = [1n, 2n].map((id) => ({ id, name: 'new' }))
    await assert.rejects(store.importPlants(plants, 'replace'), { number: 50700 })
    assert.equal(await store.getPlant(2n), undefined)
    assert.equal((await store.getPlant(1n))?.name, 'old')
    // Several rows of the journal, by one statement that the server has not prepared yet.
    const large = [1n, 2n, 3n].map((id) => ({ id, name: 'new'.repeat(250_000) }))
    await assert.rejects(store.importPlants(large, 'replace'), { number: 50700 })
    await store.ping()
    await query(url, 'DROP TRIGGER fill ON plant_store.plants')
    assert.deepEqual(await store.importPlants(plants, 'replace'), ['replaced', 'stored'])
  })

  it('answers creates beside locked plants, with a new key or without, taken or not', async () => {
    const url = await postgres.newUrl()
    const store = await open(url)
    const create = (id: bigint) => store.createPlant({ id, name: '' })
    const createOnce = (id: bigint) =>
      store.createPlantOnce({ id, name: '' }, { tokenId: 'tok', key: `${id}` })
    await create(1n)
    const client = await openClient(url)
    releaseAfterTest(() => client.end())
    await client.query('BEGIN; SELECT FROM plant_store.plants FOR UPDATE')
    const [made] = await Promise.all([createOnce(2n), create(3n)])
    assert.equal(typeof made === 'object' && made.isReplay, false)
    assert.equal(await create(1n), 'exists')
  })

  it('confirms the replay of a key only when its standby has the plant', async () => {
    const { url, awaiting, forgetStandby, stop } = await startWithoutStandby()
    releaseAfterTest(stop)
    const createOnce = (store: Store) =>
      store.createPlantOnce({ id: 1n, name: '' }, { tokenId: 'tok', key: 'one' })
    await createOnce(await open(url))
    const store = await open(awaiting, { answerTimeoutMs: 2_000 })
    await assert.rejects(createOnce(store), { number: 50400 })
    await forgetStandby()
    const replay = await createOnce(store)
    assert.equal(typeof replay === 'object' && replay.isReplay, true)
  })
})

describe('services that start together on an empty PostgreSQL', () => {
  it('all serve: one of them migrates, and the others wait for it', async () => {
    const url = await postgres.newUrl()
    const stores = await Promise.all(Array.from({ length: 6 }, () => open(url)))
    await Promise.all(stores.map((store, id) => store.createPlant({ id: BigInt(id), name: '' })))
    assert.notEqual(await stores[0]?.getPlant(5n), undefined)
  })
})
