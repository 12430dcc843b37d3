import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { setImmediate, setTimeout as sleep } from 'node:timers/promises'
import { withTimeout } from '../../src/store/postgres/failures.ts'
import { openPrimary } from '../../src/store/postgres/primary.ts'
import { type Position, type Store, UnusableStore } from '../../src/store/store.ts'
import { newDatabaseWith } from '../support/databases.ts'
import { postgres } from '../support/engines.ts'
import { holdOpen, untilWaiting } from '../support/locks.ts'
import { openClient, query, startWithoutStandby } from '../support/postgres.ts'
import { openProxy } from '../support/proxy.ts'
import { releaseAfterTest } from '../support/release.ts'
import { startService } from '../support/service.ts'
import {
  answers,
  everything,
  openPostgresStore as open,
  openNewPostgresStore as openNew,
  type PostgresStoreOptions,
  quiet,
  storeMany,
} from '../support/stores.ts'
import { waitUntil } from '../support/wait.ts'

/** A database behind a cable that can be cut. */
async function openCable() {
  const url = await postgres.newUrl()
  const { hostname, port } = new URL(url)
  const proxy = await openProxy(hostname, Number(port))
  return { url, proxy, proxied: proxy.toUrl(url) }
}

async function openBehindProxy(options?: PostgresStoreOptions) {
  const cable = await openCable()
  return { ...cable, store: await open(cable.proxied, options) }
}

/** Has every statement that changes plants in this way, or each row of it, run some code. */
function addTrigger(url: string, when: string, code: string, each = 'STATEMENT') {
  return query(
    url,
    `CREATE OR REPLACE FUNCTION plant_store.react() RETURNS trigger LANGUAGE plpgsql AS
      $$ BEGIN ${code}; RETURN NULL; END $$;
    CREATE OR REPLACE TRIGGER react ${when} ON plant_store.plants FOR EACH ${each}
      EXECUTE FUNCTION plant_store.react()`,
  )
}

const toNumbers = (outcomes: PromiseSettledResult<unknown>[]): number[] =>
  outcomes.map((outcome) => (outcome.status === 'rejected' ? outcome.reason.number : 0))

describe('a PostgreSQL that goes away', () => {
  it('is not away because this process was stopped', async () => {
    const primary = await openPrimary(await postgres.newUrl(), quiet)
    releaseAfterTest(primary.close)
    const [writer] = primary.session()?.writers ?? []
    const answer = withTimeout(writer?.run('SELECT 1 AS one') ?? Promise.reject(), 50)
    await setImmediate()
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 1_000)
    assert.deepEqual([...(await answer)], [{ one: 1 }])
  })

  it('makes the service not ready, and is refused at once, until it returns', async () => {
    // Nothing here can be refused because its time for an answer is over.
    const { proxy, proxied, store } = await openBehindProxy({ answerTimeoutMs: 600_000 })
    const service = await startService(proxied)
    const readiness = async () => (await service.call({ path: '/readyz' })).status
    assert.equal(await readiness(), 200)
    await proxy.cut()
    await waitUntil(async () => (await readiness()) === 503, 'the service is not ready')
    await waitUntil(async () => !(await answers(store)), 'the store has noticed')
    await assert.rejects(async () => store.createPlant({ id: 1n, name: '' }), { number: 50301 })
    await assert.rejects(async () => store.getPlant(1n), { number: 50301 })
    await proxy.restore()
    await waitUntil(async () => (await readiness()) === 200, 'the service is ready')
    assert.ok(service.log.some((line) => line.includes('the store is away')))
    assert.ok(service.log.some((line) => line.includes('the store is back')))
    await waitUntil(() => answers(store), 'the store is back')
    assert.equal(typeof (await store.createPlant({ id: 1n, name: '' })), 'bigint')
  })

  for (const fate of ['cut', 'stallNewest'] as const) {
    it(`ends a walk with a failure, not as if there were no more plants (${fate})`, async () => {
      const { url, proxy, store } = await openBehindProxy({ answerTimeoutMs: 2_000 })
      await query(
        url,
        `INSERT INTO plant_store.plants
          SELECT id, repeat('x', 1000), NULL, 1 FROM generate_series(1, 20000) AS id`,
      )
      const snapshot = await store.openSnapshot()
      releaseAfterTest(snapshot.close)
      const walk = snapshot.walkPlants(everything)[Symbol.asyncIterator]()
      assert.equal((await walk.next()).done, false)
      await proxy[fate]()
      const readOn = async () => {
        while (!(await walk.next()).done);
      }
      await assert.rejects(readOn, { number: 50301 })
    })
  }

  it('leaves the outcome of a write open that was sent, and of no other', async () => {
    const { url, proxy, store } = await openBehindProxy()
    await postgres.block(url)
    const writes = Array.from({ length: 1_100 }, (_, index) => {
      const id = BigInt(index)
      const key = { tokenId: 'tok', key: `${index}` }
      if (index % 3 === 0) return store.createPlantOnce({ id, name: '' }, key)
      return index % 3 === 1 ? store.replacePlant({ id, name: '' }, {}) : store.deletePlant(id, {})
    })
    const outcomes = Promise.allSettled(writes)
    await untilWaiting(url)
    await proxy.cut()
    // Two batches of 512 are sent.
    const expected = [...Array(1_024).fill(50400), ...Array(76).fill(50301)]
    assert.deepEqual(toNumbers(await outcomes), expected)
  })

  it('lets no write wait longer than the time for an answer, sent or not', async () => {
    const { url, store } = await openNew({ answerTimeoutMs: 1_000, batchItems: 1 })
    const release = await postgres.block(url)
    const outcomes = await Promise.allSettled(
      Array.from({ length: 10 }, (_, id) => store.createPlant({ id: BigInt(id), name: '' })),
    )
    // Two batches were with the server; the others had not been sent.
    assert.deepEqual(toNumbers(outcomes), [50400, 50400, ...Array(8).fill(50301)])
    await release()
    await waitUntil(async () => (await store.getPlant(1n)) !== undefined, 'the lock is released')
    // A write that was refused as not stored is not sent later.
    assert.equal(typeof (await store.createPlant({ id: 9n, name: 'again' })), 'bigint')
    assert.equal(await store.getPlant(5n), undefined)
  })

  it('counts the time for a write from its arrival, though it is sent later', async () => {
    const { url, store } = await openNew({ answerTimeoutMs: 1_000, batchItems: 1 })
    const toInsertion = (id: number) =>
      `INSERT INTO plant_store.plants (id, name, version) VALUES (${id}, '', 0)`
    const [first] = await Promise.all([0, 1, 2].map((id) => holdOpen(url, toInsertion(id))))
    const ended: number[] = []
    const create = async (id: number) => {
      await store.createPlant({ id: BigInt(id), name: '' }).catch(() => {})
      ended.push(id)
    }
    const writes = [0, 1, 2].map(create)
    await untilWaiting(url, 2)
    await sleep(200)
    // It never leaves the queue. The third is sent long after it has come, and held again.
    writes.push(create(3))
    await sleep(400)
    await first?.release()
    await Promise.all(writes)
    assert.deepEqual(ended, [0, 1, 2, 3])
  })

  it('is left by a start that has failed, though it was found again meanwhile', async () => {
    const url = await postgres.newUrl()
    await (await open(url)).close()
    const version = await holdOpen(url, 'LOCK TABLE plant_store.schema_version')
    const failed = assert.rejects(openPrimary(url, quiet), UnusableStore)
    await untilWaiting(url)
    const own = `FROM pg_stat_activity
      WHERE datname = current_database() AND application_name = 'plant-store'`
    await query(url, `SELECT pg_terminate_backend(pid) ${own} AND state = 'idle' LIMIT 1`)
    await failed
    await version.release()
    await waitUntil(async () => (await query(url, `SELECT ${own}`)).length === 0, 'it has left')
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
})

describe('a page of the journal', () => {
  it('brings the changes that are on it, and no others', async () => {
    const { proxy, store } = await openBehindProxy()
    async function measure(run: () => Promise<unknown>) {
      const before = proxy.receivedBytes()
      await run()
      return proxy.receivedBytes() - before
    }
    const rows = 5
    for (let row = 0; row < rows; row++) await storeMany(store, row * 100, 100, 'x'.repeat(500))
    const page = await measure(() => store.readJournal('oldest', 100))
    const all = await measure(() => store.readJournal('oldest', rows * 100))
    assert.ok(page * rows < all * 2, `${page} and ${all} bytes came`)
    const end = (await store.journalEnd()) as Position
    const nothing = await measure(() => store.readJournal(end, 100))
    assert.ok(nothing < page / 2, `${nothing} bytes came`)
  })
})

describe('a PostgreSQL that hesitates', () => {
  it('is asked again a few times when transactions collide', async () => {
    const { url, store } = await openNew()
    await query(url, 'CREATE SEQUENCE plant_store.attempts')
    await addTrigger(
      url,
      'BEFORE INSERT',
      `IF nextval('plant_store.attempts') % 3 <> 0 THEN
        RAISE EXCEPTION USING ERRCODE = '40001';
      END IF`,
    )
    assert.equal(typeof (await store.createPlant({ id: 1n, name: '' })), 'bigint')
    const collide = "RAISE EXCEPTION USING ERRCODE = '40P01'"
    await addTrigger(url, 'BEFORE INSERT', `PERFORM nextval('plant_store.attempts'); ${collide}`)
    await query(url, "SELECT setval('plant_store.attempts', 1, false)")
    await assert.rejects(async () => store.createPlant({ id: 2n, name: '' }), { number: 50301 })
    const [row] = await query<{ last_value: string }>(
      url,
      'SELECT last_value FROM plant_store.attempts',
    )
    const attempts = Number(row?.last_value)
    assert.ok(attempts > 1 && attempts <= 20, `${attempts} attempts`)
  })

  it('acknowledges no batch of which nothing was inserted, though no id is taken', async () => {
    const { url, store } = await openNew()
    await addTrigger(url, 'BEFORE INSERT', 'RETURN NULL', 'ROW')
    const plants = [1n, 2n].map((id) => ({ id, name: '' }))
    await assert.rejects(async () => store.importPlants(plants, 'keep'), { number: 50301 })
  })

  it('stores nothing of an import whose second statement fails', async () => {
    const { url, store } = await openNew()
    await store.createPlant({ id: 1n, name: 'old' })
    await addTrigger(url, 'BEFORE UPDATE', "RAISE EXCEPTION USING ERRCODE = '53100'")
    const plants = [1n, 2n].map((id) => ({ id, name: 'new' }))
    await assert.rejects(store.importPlants(plants, 'replace'), { number: 50700 })
    assert.equal(await store.getPlant(2n), undefined)
    assert.equal((await store.getPlant(1n))?.name, 'old')
    await store.ping()
    await query(url, 'DROP TRIGGER react ON plant_store.plants')
    assert.deepEqual(await store.importPlants(plants, 'replace'), ['replaced', 'stored'])
  })

  it('answers creates beside locked plants, with a new key or without, taken or not', async () => {
    const { url, store } = await openNew()
    const create = (id: bigint) => store.createPlant({ id, name: '' })
    const createOnce = (id: bigint) =>
      store.createPlantOnce({ id, name: '' }, { tokenId: 'tok', key: `${id}` })
    await create(1n)
    await holdOpen(url, 'SELECT FROM plant_store.plants FOR UPDATE')
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

describe('a PostgreSQL with other defaults', () => {
  it('leaves a write open that no standby confirmed, though warnings are off', async () => {
    const url = await newDatabaseWith({ client_min_messages: 'error' })
    const store = await postgres.open(url)
    const warning = "RAISE WARNING 'canceling wait for synchronous replication'"
    await addTrigger(url, 'AFTER INSERT', warning)
    await assert.rejects(async () => store.createPlant({ id: 1n, name: '' }), { number: 50400 })
  })

  it('keeps the connections of a store that is idle', async () => {
    const url = await newDatabaseWith({ idle_session_timeout: '200' })
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
})
