import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { Position, Store } from '../../src/store/store.ts'
import { holdChange, untilWaiting } from '../support/locks.ts'
import { newRole, query } from '../support/postgres.ts'
import { newReceiver } from '../support/receiver-record.ts'
import { openNewPostgresStore, openPostgresStore } from '../support/stores.ts'
import { readIds } from './journal-pages.ts'

async function createPlants(store: Store, ids: readonly bigint[]): Promise<void> {
  for (const id of ids) await store.createPlant({ id, name: `Plant ${id}` })
}

describe('a sequence that is behind the journal', () => {
  /** A store whose sequence begins again, as after a move by logical replication. The changes before the last one were trimmed. */
  async function newMoved() {
    const { url, store } = await openNewPostgresStore()
    await store.receivers.add(newReceiver())
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
    const [receiver] = (await stores[0]?.receivers.list()) ?? []
    assert.equal(receiver?.reason, 'the database was copied or moved')
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
    const slow = await holdChange(url, 6)
    const opening = openPostgresStore(url)
    await untilWaiting(url)
    await slow.query('COMMIT')
    const store = await opening
    assert.equal(await older.readJournal(end, 1), 'gone')
    const begin = (await store.journalEnd()) as Position
    await createPlants(older, [7n])
    assert.deepEqual(await readIds(store, begin), [7n])
    assert.deepEqual(await readIds(older, begin), [7n])
  })

  it('is refused with one line if the user may not raise it', async () => {
    const { url, store } = await newMoved()
    await store.close()
    const ownUrl = await newRole(
      url,
      (role) => `GRANT USAGE ON SCHEMA plant_store TO ${role};
       GRANT ALL ON ALL TABLES IN SCHEMA plant_store TO ${role};
       GRANT USAGE ON SEQUENCE plant_store.journal_seq TO ${role}`,
    )
    await assert.rejects(openPostgresStore(ownUrl), {
      name: 'UnusableStore',
      message:
        'The sequence plant_store.journal_seq is behind the journal, as after a move by logical ' +
        'replication, and the user of DATABASE_URL may not raise it: grant it UPDATE on it.',
    })
    const { username } = new URL(ownUrl)
    await query(url, `GRANT UPDATE ON SEQUENCE plant_store.journal_seq TO ${username}`)
    const opened = await openPostgresStore(ownUrl)
    const end = (await opened.journalEnd()) as Position
    await createPlants(opened, [5n])
    assert.deepEqual(await readIds(opened, end), [5n])
  })
})
