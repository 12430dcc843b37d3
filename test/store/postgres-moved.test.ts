import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { describe, it } from 'node:test'
import { toAddress } from '../../src/store/postgres/address.ts'
import { prepareSchema } from '../../src/store/postgres/schema.ts'
import { openSession } from '../../src/store/postgres/session.ts'
import { type Position, type Store, toPlant } from '../../src/store/store.ts'
import { newDatabase } from '../support/databases.ts'
import { newCluster, openClient, query, startServer } from '../support/postgres.ts'
import { newReceiver } from '../support/receiver-record.ts'
import { releaseAfterTest } from '../support/release.ts'
import { openPostgresStore } from '../support/stores.ts'
import { waitUntil } from '../support/wait.ts'

async function readIds(store: Store, after: Position | 'oldest'): Promise<bigint[] | string> {
  const page = await store.readJournal(after, 100)
  return typeof page === 'string' ? page : page.events.map((event) => toPlant(event).id)
}

async function createPlants(store: Store, ids: readonly bigint[]): Promise<void> {
  for (const id of ids) await store.createPlant({ id, name: `Plant ${id}` })
}

/** Creates the tables without their rows, as a dump of the schema does. */
async function createSchema(url: string): Promise<void> {
  const session = await openSession(toAddress(url), 60_000)
  releaseAfterTest(() => session.end(0))
  const [writer] = session.writers
  assert.ok(writer)
  await prepareSchema(writer)
  await query(
    url,
    `DO $$ DECLARE name text; BEGIN
       FOR name IN SELECT tablename FROM pg_tables WHERE schemaname = 'plant_store' LOOP
         EXECUTE 'TRUNCATE plant_store.' || name;
       END LOOP; END $$;
     ALTER SEQUENCE plant_store.journal_seq RESTART`,
  )
}

describe('a store that was moved by logical replication', () => {
  it('shows every new change to followers, after those that came along', async () => {
    const server = await startServer(await newCluster(), { wal_level: 'logical', fsync: 'off' })
    releaseAfterTest(server.stop)
    await query(server.toUrl('postgres'), 'CREATE DATABASE source')
    await query(server.toUrl('postgres'), 'CREATE DATABASE target')
    const [from, to] = [server.toUrl('source'), server.toUrl('target')]
    const source = await openPostgresStore(from)
    await source.receivers.add(newReceiver({ id: 'whk_1' }))
    await createPlants(source, [1n, 2n, 3n])
    while (!(await source.trimJournal(Date.now() + 60_000)));
    await createSchema(to)
    await query(
      from,
      `DO $$ DECLARE name text; BEGIN
         FOR name IN SELECT tablename FROM pg_tables WHERE schemaname = 'plant_store' LOOP
           EXECUTE 'ALTER TABLE plant_store.' || name || ' REPLICA IDENTITY FULL';
         END LOOP; END $$;
       CREATE PUBLICATION moved FOR TABLES IN SCHEMA plant_store`,
    )
    await query(from, "SELECT pg_create_logical_replication_slot('moved', 'pgoutput')")
    await query(
      to,
      `CREATE SUBSCRIPTION moved CONNECTION '${from}'
       PUBLICATION moved WITH (create_slot = false)`,
    )
    await createPlants(source, [4n, 5n])
    await source.close()
    const isThere = `SELECT FROM plant_store.plants
      WHERE NOT EXISTS (SELECT FROM pg_subscription_rel WHERE srsubstate <> 'r')
      HAVING count(*) = 5`
    await waitUntil(async () => (await query(to, isThere)).length > 0, 'all rows have come')
    await query(to, 'ALTER SUBSCRIPTION moved DISABLE')
    await query(to, 'ALTER SUBSCRIPTION moved SET (slot_name = NONE)')
    await query(to, 'DROP SUBSCRIPTION moved')

    const store = await openPostgresStore(to)
    const end = (await store.journalEnd()) as Position
    await createPlants(store, [6n, 7n])
    assert.deepEqual(await readIds(store, end), [6n, 7n])
    assert.deepEqual(await readIds(store, 'oldest'), [3n, 4n, 5n, 6n, 7n])
    const [receiver] = await store.receivers.list()
    assert.equal(receiver?.reason, 'the database was copied or moved')
  })
})

describe('a sequence that is behind the journal', () => {
  /** A store whose sequence begins again. The changes before the last one were trimmed. */
  async function newMoved() {
    const url = await newDatabase()
    const store = await openPostgresStore(url)
    await createPlants(store, [1n, 2n, 3n, 4n])
    while (!(await store.trimJournal(Date.now() + 60_000)));
    await query(url, 'ALTER SEQUENCE plant_store.journal_seq RESTART')
    return { url, store }
  }

  it('is raised once by processes that start together, beside changes', async () => {
    const { url, store } = await newMoved()
    await store.close()
    const stores = await Promise.all(Array.from({ length: 4 }, () => openPostgresStore(url)))
    const ends = await Promise.all(stores.map((one) => one.journalEnd()))
    assert.equal(new Set(ends).size, 1)
    const ids = [5n, 6n, 7n, 8n]
    await Promise.all(stores.map((one, index) => createPlants(one, ids.slice(index, index + 1))))
    const seen = await readIds(stores[0] as Store, ends[0] as Position)
    assert.deepEqual([...seen].sort(), ids)
  })

  it('is raised beside a process that has not looked, whose followers then begin again', async () => {
    const { url, store: older } = await newMoved()
    const end = (await older.journalEnd()) as Position
    await createPlants(older, [5n])
    assert.deepEqual(await readIds(older, end), [], 'the change has a low number')
    const slow = await openClient(url)
    releaseAfterTest(() => slow.end())
    await slow.query(`BEGIN; INSERT INTO plant_store.plants VALUES (6, 'slow', NULL, 1);
      INSERT INTO plant_store.journal
      VALUES (nextval('plant_store.journal_seq'), 0, 7, 1, E'c\\t\\t6\\t"slow"')`)
    const opening = openPostgresStore(url)
    const isWaiting = `SELECT FROM pg_locks WHERE NOT granted
      AND relation = 'plant_store.plants'::regclass`
    await waitUntil(async () => (await query(url, isWaiting)).length > 0, 'the start waits')
    await slow.query('COMMIT')
    const store = await opening
    assert.equal(await readIds(older, end), 'gone')
    const begin = (await store.journalEnd()) as Position
    await createPlants(older, [7n])
    assert.deepEqual(await readIds(store, begin), [7n])
    assert.deepEqual(await readIds(older, begin), [7n])
  })

  it('is refused with one line if the user may not raise it', async () => {
    const { url, store } = await newMoved()
    await store.close()
    const role = `service_${randomBytes(6).toString('hex')}`
    await query(
      url,
      `CREATE ROLE ${role} LOGIN PASSWORD 'pw';
       GRANT USAGE ON SCHEMA plant_store TO ${role};
       GRANT ALL ON ALL TABLES IN SCHEMA plant_store TO ${role};
       GRANT USAGE ON SEQUENCE plant_store.journal_seq TO ${role}`,
    )
    releaseAfterTest(async () => {
      await query(url, `DROP OWNED BY ${role} CASCADE; DROP ROLE ${role}`)
    })
    const ownUrl = url.replace(/\/\/[^@]+@/, `//${role}:pw@`)
    await assert.rejects(openPostgresStore(ownUrl), {
      name: 'UnusableStore',
      message:
        'The sequence plant_store.journal_seq is behind the journal, as after a move by logical ' +
        'replication, and the user of DATABASE_URL may not raise it: grant it UPDATE on it.',
    })
    await query(url, `GRANT UPDATE ON SEQUENCE plant_store.journal_seq TO ${role}`)
    const opened = await openPostgresStore(ownUrl)
    const end = (await opened.journalEnd()) as Position
    await createPlants(opened, [5n])
    assert.deepEqual(await readIds(opened, end), [5n])
  })
})
