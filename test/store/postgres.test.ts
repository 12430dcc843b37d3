import assert from 'node:assert/strict'
import { createServer } from 'node:net'
import { describe, it } from 'node:test'
import { openPrimary } from '../../src/store/postgres/connection.ts'
import { migrations } from '../../src/store/postgres/migrations.ts'
import { buildPostgresStore, type PostgresStoreOptions } from '../../src/store/postgres/store.ts'
import { type Store, UnusableStore } from '../../src/store/store.ts'
import { run } from '../support/command.ts'
import { engines, findServer } from '../support/engines.ts'
import { newFolder } from '../support/folder.ts'
import { findFreePort, password, query } from '../support/postgres.ts'
import { openProxy } from '../support/proxy.ts'
import { startService } from '../support/service.ts'

const quiet = { onLost() {}, onFound() {} }
const postgresql = engines.find(({ name }) => name === 'PostgreSQL') as (typeof engines)[number]

async function open(url: string, options?: PostgresStoreOptions): Promise<Store> {
  return buildPostgresStore(await openPrimary(url, quiet), options)
}

/** A database behind a cable that can be cut. */
async function openBehindProxy(options?: PostgresStoreOptions) {
  const url = await postgresql.newUrl()
  const { hostname, port } = new URL(url)
  const proxy = await openProxy(hostname, Number(port))
  const proxied = url.replace(`:${port}/`, `:${proxy.port}/`)
  return { url, proxy, proxied, store: await open(proxied, options) }
}

async function until(condition: () => Promise<boolean>, withinMs: number): Promise<number> {
  const startedAt = performance.now()
  while (!(await condition())) {
    assert.ok(performance.now() - startedAt < withinMs, `not within ${withinMs} ms`)
    await new Promise((resolve) => setTimeout(resolve, 10))
  }
  return performance.now() - startedAt
}

const answers = (store: Store) =>
  store.ping().then(
    () => true,
    () => false,
  )

describe('a PostgreSQL that goes away', () => {
  it('is refused at once while it is away, and used again within a second of its return', async () => {
    const { proxy, store } = await openBehindProxy()
    await proxy.cut()
    await until(async () => !(await answers(store)), 1_000)
    const startedAt = performance.now()
    await assert.rejects(async () => store.createPlant({ id: 1n, name: '' }), { number: 50301 })
    await assert.rejects(async () => store.getPlant(1n), { number: 50301 })
    assert.ok(performance.now() - startedAt < 100)
    await proxy.restore()
    await until(() => answers(store), 1_000)
    assert.equal(typeof (await store.createPlant({ id: 1n, name: '' })), 'bigint')
    await store.close()
  })

  it('is not ready in the meantime', async () => {
    const { proxy, proxied, store } = await openBehindProxy()
    await store.close()
    const service = await startService(proxied)
    const readiness = async () => (await service.call({ path: '/readyz' })).status
    assert.equal(await readiness(), 200)
    await proxy.cut()
    await until(async () => (await readiness()) === 503, 1_000)
    await proxy.restore()
    await until(async () => (await readiness()) === 200, 1_000)
    assert.ok(service.log.some((line) => line.includes('the store is away')))
    assert.ok(service.log.some((line) => line.includes('the store is back')))
  })

  it('leaves the fate of a write open that was sent before', async () => {
    const { url, proxy, store } = await openBehindProxy()
    const release = await postgresql.block(url)
    const sent = store.createPlant({ id: 1n, name: '' })
    const outcome = assert.rejects(async () => sent, { number: 50400 })
    await until(async () => {
      const rows = await query(url, "SELECT FROM pg_stat_activity WHERE wait_event_type = 'Lock'")
      return rows.length > 0
    }, 5_000)
    await proxy.cut()
    await outcome
    await release()
    await store.close()
  })

  for (const fate of ['cut', 'stallNewest'] as const) {
    it(`is not taken for the end of the plants by a walk (${fate})`, async () => {
      const { url, proxy, store } = await openBehindProxy({ answerTimeoutMs: 500 })
      await query(
        url,
        "INSERT INTO plant_store.plants SELECT id, repeat('x', 1000), NULL, 1 FROM generate_series(1, 20000) AS id",
      )
      const snapshot = await store.openSnapshot()
      const everything = { after: undefined, tag: undefined, limit: Number.POSITIVE_INFINITY }
      const walk = snapshot.walkPlants(everything)[Symbol.asyncIterator]()
      assert.equal((await walk.next()).done, false)
      await proxy[fate]()
      const readOn = async () => {
        while (!(await walk.next()).done);
      }
      await assert.rejects(readOn, { number: 50301 })
      await snapshot.close()
      await store.close()
    })
  }

  it('does not end the process when it is lost in the middle of a transaction', async () => {
    const { url, proxy, store } = await openBehindProxy()
    await store.createPlant({ id: 1n, name: '' })
    for (let round = 0; round < 5; round++) {
      const release = await postgresql.block(url)
      const key = { tokenId: 'tok', key: String(round) }
      const writes = [
        store.replacePlant({ id: 1n, name: 'x' }, {}),
        store.deletePlant(2n, {}),
        store.createPlantOnce({ id: BigInt(3 + round), name: 'x' }, key),
      ]
      const outcomes = Promise.allSettled(writes)
      await until(async () => {
        const rows = await query(url, "SELECT FROM pg_stat_activity WHERE wait_event_type = 'Lock'")
        return rows.length > 0
      }, 5_000)
      await proxy.cut()
      for (const outcome of await outcomes) {
        assert.ok(outcome.status === 'rejected' && [50400, 50301].includes(outcome.reason.number))
      }
      await release()
      await proxy.restore()
      await until(() => answers(store), 2_000)
    }
    await store.close()
  })

  it('keeps nobody waiting longer than the time for an answer, whether sent or not', async () => {
    const url = await postgresql.newUrl()
    const store = await open(url, { answerTimeoutMs: 300, batchItems: 1 })
    const release = await postgresql.block(url)
    const startedAt = performance.now()
    const outcomes = await Promise.allSettled(
      Array.from({ length: 10 }, (_, id) => store.createPlant({ id: BigInt(id), name: '' })),
    )
    assert.ok(performance.now() - startedAt < 1_000)
    const numbers = outcomes.map((outcome) =>
      outcome.status === 'rejected' ? outcome.reason.number : 0,
    )
    // Two were with the server, the others had not been sent.
    assert.deepEqual(numbers, [50400, 50400, ...Array(8).fill(50301)])
    await release()
    await until(async () => (await store.getPlant(1n)) !== undefined, 2_000)
    // What was called not stored is not sent later.
    assert.equal(typeof (await store.createPlant({ id: 9n, name: 'again' })), 'bigint')
    assert.equal(await store.getPlant(5n), undefined)
    await store.close()
  })

  it('that is lost at any moment of a start ends it with one line, or not at all', async () => {
    const url = await postgresql.newUrl()
    const { hostname, port } = new URL(url)
    const proxy = await openProxy(hostname, Number(port))
    const proxied = url.replace(`:${port}/`, `:${proxy.port}/`)
    for (let delayMs = 5; delayMs < 100; delayMs += 8) {
      const opening = openPrimary(proxied, quiet, 100).then(
        (connection) => connection.close(),
        (error) => assert.ok(error instanceof UnusableStore, String(error)),
      )
      await new Promise((resolve) => setTimeout(resolve, delayMs))
      await proxy.cut()
      await opening
      await proxy.restore()
    }
  })

  it('is found among several addresses', async () => {
    const url = await postgresql.newUrl()
    const { host } = new URL(url)
    const nobody = `127.0.0.1:${await findFreePort()}`
    const store = await open(url.replace(host, `${nobody},${host}`))
    assert.equal(typeof (await store.createPlant({ id: 1n, name: '' })), 'bigint')
    await store.close()
  })
})

describe('a PostgreSQL that hesitates', () => {
  it('is asked again when transactions collided, and only so often', async () => {
    const url = await postgresql.newUrl()
    const store = await open(url)
    await query(
      url,
      `CREATE SEQUENCE plant_store.attempts;
      CREATE FUNCTION plant_store.collide() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
        IF nextval('plant_store.attempts') % 3 <> 0 THEN RAISE EXCEPTION USING ERRCODE = '40001'; END IF;
        RETURN NULL; END $$;
      CREATE TRIGGER collide BEFORE INSERT ON plant_store.plants EXECUTE FUNCTION plant_store.collide()`,
    )
    assert.equal(typeof (await store.createPlant({ id: 1n, name: '' })), 'bigint')
    await query(
      url,
      `CREATE OR REPLACE FUNCTION plant_store.collide() RETURNS trigger LANGUAGE plpgsql AS
      $$ BEGIN PERFORM nextval('plant_store.attempts'); RAISE EXCEPTION USING ERRCODE = '40P01'; END $$;
      SELECT setval('plant_store.attempts', 1, false)`,
    )
    await assert.rejects(async () => store.createPlant({ id: 2n, name: '' }), { number: 50301 })
    const [row] = await query<{ last_value: string }>(
      url,
      'SELECT last_value FROM plant_store.attempts',
    )
    assert.equal(Number(row?.last_value), 5)
    await store.close()
  })

  it('is not believed when it commits with a warning: the standby may not have it', async () => {
    const url = await postgresql.newUrl()
    const store = await open(url)
    await query(
      url,
      `CREATE FUNCTION plant_store.warn() RETURNS trigger LANGUAGE plpgsql AS
        $$ BEGIN RAISE WARNING 'canceling wait for synchronous replication'; RETURN NULL; END $$;
      CREATE TRIGGER warn AFTER INSERT ON plant_store.plants EXECUTE FUNCTION plant_store.warn()`,
    )
    await assert.rejects(async () => store.createPlant({ id: 1n, name: '' }), { number: 50400 })
    await store.close()
  })

  it('lets two batches with the same ids in other orders pass', async () => {
    const url = await postgresql.newUrl()
    const [one, two] = [await open(url), await open(url)]
    for (let round = 0; round < 20; round++) {
      const ids = Array.from({ length: 50 }, (_, index) => BigInt(round * 50 + index))
      const outcomes = await Promise.all([
        ...ids.map((id) => one.createPlant({ id, name: '' })),
        ...ids.toReversed().map((id) => two.createPlant({ id, name: '' })),
      ])
      assert.equal(outcomes.filter((outcome) => outcome === 'exists').length, 50)
    }
    await Promise.all([one.close(), two.close()])
  })
})

describe('many that start at once on an empty PostgreSQL', () => {
  it('all serve: one migrates, the others wait for it', async () => {
    const url = await postgresql.newUrl()
    const stores = await Promise.all(Array.from({ length: 6 }, () => open(url)))
    await Promise.all(stores.map((store, id) => store.createPlant({ id: BigInt(id), name: '' })))
    assert.notEqual(await stores[0]?.getPlant(5n), undefined)
    await Promise.all(stores.map((store) => store.close()))
  })
})

describe('a PostgreSQL that cannot be the store', () => {
  const role = (url: string, name: string) => url.replace(/\/\/[^@]+@/, `//${name}:pw@`)

  const cases: [title: string, prepare: () => Promise<string>, message: RegExp][] = [
    [
      'a wrong password',
      async () => (await postgresql.newUrl()).replace(encodeURIComponent(password), 'wrong'),
      /refuses the user name or the password of DATABASE_URL/,
    ],
    [
      'a database that does not exist',
      async () => `${await findServer()}nothing`,
      /database that DATABASE_URL names does not exist/,
    ],
    [
      'a newer schema',
      async () => {
        const url = await postgresql.newUrl()
        await (await open(url)).close()
        await query(url, `UPDATE plant_store.schema_version SET version = ${migrations.length + 1}`)
        return url
      },
      new RegExp(
        `newer release \\(schema ${migrations.length + 1}, this one knows ${migrations.length}\\)`,
      ),
    ],
    [
      'a role that may only read',
      async () => {
        const url = await postgresql.newUrl()
        await (await open(url)).close()
        await query(
          url,
          `DROP ROLE IF EXISTS reader; CREATE ROLE reader LOGIN PASSWORD 'pw';
        GRANT USAGE ON SCHEMA plant_store TO reader; GRANT SELECT ON ALL TABLES IN SCHEMA plant_store TO reader`,
        )
        return role(url, 'reader')
      },
      /may not write to the database: grant it/,
    ],
    [
      'a role that may not change plants',
      async () => {
        const url = await postgresql.newUrl()
        await (await open(url)).close()
        await query(
          url,
          `DROP ROLE IF EXISTS creator; CREATE ROLE creator LOGIN PASSWORD 'pw';
          GRANT USAGE ON SCHEMA plant_store TO creator;
          GRANT SELECT, INSERT ON ALL TABLES IN SCHEMA plant_store TO creator`,
        )
        return role(url, 'creator')
      },
      /may not write to the database: grant it/,
    ],
    [
      'a role that may not make the schema',
      async () => {
        const url = await postgresql.newUrl()
        await query(url, "DROP ROLE IF EXISTS guest; CREATE ROLE guest LOGIN PASSWORD 'pw'")
        return role(url, 'guest')
      },
      /may not write to the database: grant it CREATE/,
    ],
    [
      'a database with another encoding',
      async () => {
        const server = await findServer()
        await query(`${server}postgres`, 'DROP DATABASE IF EXISTS ascii')
        await query(
          `${server}postgres`,
          "CREATE DATABASE ascii ENCODING 'SQL_ASCII' TEMPLATE template0",
        )
        return `${server}ascii`
      },
      /has the encoding SQL_ASCII: create one with ENCODING 'UTF8'/,
    ],
  ]
  for (const [title, prepare, message] of cases) {
    it(`is refused with one line: ${title}`, async () => {
      await assert.rejects(
        open(await prepare()),
        (error) =>
          error instanceof UnusableStore &&
          message.test(error.message) &&
          !/\n/.test(error.message) &&
          !error.message.includes(password) &&
          !error.message.includes(encodeURIComponent(password)),
      )
    })
  }

  it('is refused at start: a server that is not PostgreSQL, and one that is not there', async () => {
    const other = createServer((socket) =>
      socket.on('error', () => {}).end('HTTP/1.1 400 Bad Request\r\n\r\n'),
    )
    await new Promise<void>((resolve) => other.listen(0, '127.0.0.1', resolve))
    const { port } = other.address() as { port: number }
    for (const at of [port, await findFreePort()]) {
      await assert.rejects(
        openPrimary(`postgres://a:b@127.0.0.1:${at}/x`, quiet, 200),
        (error) =>
          error instanceof UnusableStore &&
          /^No PostgreSQL server answers at 127\.0\.0\.1:\d+ of DATABASE_URL \([^)]+\)\. Check the address[^\n]*$/.test(
            error.message,
          ),
      )
    }
    other.close()
  })

  it('ends a start with 78', async () => {
    const env = { PORT: '0', DATABASE_URL: `${await findServer()}nothing` }
    const { exitCode, stdout, stderr } = await run(['serve'], { folder: newFolder(), env })
    assert.match(stderr, /^The database that DATABASE_URL names does not exist[^\n]*\n$/)
    assert.equal(stdout, '')
    assert.equal(exitCode, 78)
  })
})
