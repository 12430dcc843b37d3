import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { newDatabase } from '../support/databases.ts'
import { newRole, query } from '../support/postgres.ts'
import { newReceiver } from '../support/receiver-record.ts'
import { releaseAfterTest } from '../support/release.ts'
import { openNewPostgresStore, openPostgresStore } from '../support/stores.ts'
import { readIds } from './journal-pages.ts'

describe('a copy of a database on PostgreSQL', () => {
  it('has its receivers paused until they are resumed, and leaves those of the original alone', async () => {
    const { url, store } = await openNewPostgresStore()
    await store.receivers.add(newReceiver({ id: 'whk_1' }))
    await store.receivers.add(newReceiver({ id: 'whk_2', state: 'paused', reason: 'by hand' }))
    await store.receivers.claim('the original', 60_000)
    await store.close()
    const copyUrl = await copyDatabase(url)
    const copy = await openPostgresStore(copyUrl)
    assert.deepEqual(await readStates(copy), [
      'whk_1 paused: the database was copied or moved',
      'whk_2 paused: by hand',
    ])
    const revision = await copy.receivers.revision()
    await copy.receivers.change('whk_1', { kind: 'resume' })
    for (const opened of [copyUrl, url]) {
      const again = await openPostgresStore(opened)
      assert.deepEqual(await readStates(again), ['whk_1 active', 'whk_2 paused: by hand'])
    }
    assert.equal(await copy.receivers.revision(), revision + 1n)
  })

  it('has a journal with a new id, in which its receivers keep their place', async () => {
    const { url, store } = await openNewPostgresStore()
    await store.createPlant({ id: 1n, name: 'before' })
    const position = await store.journalEnd()
    await store.receivers.add(
      newReceiver({ id: 'whk_1', progress: { ...newReceiver().progress, position } }),
    )
    await store.createPlant({ id: 2n, name: 'waits for the receiver' })
    await store.close()
    const copy = await openPostgresStore(await copyDatabase(url))
    assert.equal(await copy.readJournal(position, 9), 'gone')
    const [receiver] = await copy.receivers.list()
    assert.deepEqual(await readIds(copy, receiver?.progress.position ?? ''), [2n])
    const original = await openPostgresStore(url)
    assert.equal(typeof (await original.readJournal(position, 9)), 'object')
  })

  it('is not told from the original where the server does not say which one it is', async () => {
    const url = await newDatabase()
    const database = new URL(url).pathname.slice(1)
    await query(url, 'REVOKE EXECUTE ON FUNCTION pg_control_system() FROM PUBLIC')
    releaseAfterTest(async () => {
      await query(url, 'GRANT EXECUTE ON FUNCTION pg_control_system() TO PUBLIC')
    })
    const ownUrl = await newRole(url, (role) => `GRANT CREATE ON DATABASE ${database} TO ${role}`)
    const store = await openPostgresStore(ownUrl)
    await store.receivers.add(newReceiver({ id: 'whk_1' }))
    assert.deepEqual(await readStates(store), ['whk_1 active'])
    await store.close()
  })
})

type Opened = Awaited<ReturnType<typeof openPostgresStore>>

async function readStates({ receivers }: Opened): Promise<string[]> {
  const found = await receivers.list()
  return found.map(({ id, state, reason }) => `${id} ${state}${reason ? `: ${reason}` : ''}`)
}

/** Copies a database that nobody uses, as a dump that is restored would. */
async function copyDatabase(url: string): Promise<string> {
  const original = new URL(url).pathname.slice(1)
  const copy = `${original}_copy`
  const server = url.replace(original, 'postgres')
  await query(server, `CREATE DATABASE ${copy} TEMPLATE ${original} STRATEGY FILE_COPY`)
  releaseAfterTest(async () => {
    await query(server, `DROP DATABASE ${copy} WITH (FORCE)`)
  })
  return url.replace(original, copy)
}
