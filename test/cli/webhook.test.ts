import assert from 'node:assert/strict'
import { join } from 'node:path'
import { beforeEach, describe, it } from 'node:test'
import { maxReceivers } from '../../src/store/receivers.ts'
import { readPage } from '../store/journal-pages.ts'
import { newFolder } from '../support/folder.ts'
import { newDelivery, newReceiver } from '../support/receiver-record.ts'
import { openSqliteStore } from '../support/stores.ts'
import { openTestReceiver, verify } from '../webhooks/test-receiver.ts'
import { ends, readJson } from './ends.ts'

describe('plant-store webhook', () => {
  let folder: string
  beforeEach(async () => {
    folder = newFolder()
    openStore().close()
  })

  const path = () => join(folder, 'plants.db')
  const openStore = () => openSqliteStore(path())
  const options = () => ({ folder, env: { DATABASE_URL: `sqlite:${path()}` } })
  const json = (line: string) => readJson(`webhook ${line}`, options())
  const says = (line: string, exitCode: number, said: string | RegExp) =>
    ends(`webhook ${line}`, exitCode, said, options())
  const addOne = (flags = '') => json(`add https://example.com/hook ${flags}`.trim())

  it('add prints the secret alone, and nothing else shows it', async () => {
    const said = /^Receiver whk_\w{12} gets plant\.created, signed with this secret(?!.*whsec_)/
    const stdout = await says('add https://example.com/hook?key=1', 0, said)
    assert.match(stdout, /^whsec_[A-Za-z0-9+/]{43}=\n$/)
    for (const line of ['list', 'list --json']) {
      assert.doesNotMatch(await says(line, 0, ''), /whsec_/)
    }
  })

  it('add warns that changes are not encrypted on their way, and does not show the path', async () => {
    for (const [url, isWarned] of [
      ['http://hooks.example:8080/secret-path', true],
      ['http://[fe80::1]', true],
      ['http://localhost.example', true],
      ['https://hooks.example', false],
      ['http://localhost:3000/a', false],
      ['http://127.1.2.3', false],
      ['http://[::1]:3000', false],
    ] as const) {
      const warning = `Warning: the changes go to ${new URL(url).host} over plain HTTP, where others can read them. Use https.\n`
      const said = isWarned ? RegExp.escape(warning) : ''
      await says(`add ${url}`, 0, new RegExp(`^Receiver .*\n${said}$`))
    }
  })

  it('add takes types and a position, and list shows exactly what is promised', async () => {
    const store = openStore()
    for (const id of [1n, 2n, 3n]) await store.createPlant({ id, name: 'x' })
    const { end } = await readPage(store, 'oldest', 1)
    const flags = `--types plant.deleted,plant.created --from ${end}`
    const { secret, ...added } = await addOne(flags)
    assert.match(secret, /^whsec_/)
    const [listed] = await json('list')
    assert.deepEqual(listed, {
      id: added.id,
      url: 'https://example.com/hook',
      types: ['plant.created', 'plant.deleted'],
      state: 'active',
      reason: null,
      position: end,
      behind: listed.behind,
      createdAt: added.createdAt,
      lastSuccessAt: null,
      lastFailureAt: null,
      lastFailure: null,
    })
    assert.match(listed.createdAt, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/)
    assert.equal(listed.behind.changes, 2)
    assert.ok(listed.behind.seconds >= 0 && listed.behind.seconds < 120)
  })

  it('add begins with the latest change unless told otherwise', async () => {
    const store = openStore()
    await store.createPlant({ id: 1n, name: 'x' })
    await addOne()
    const [listed] = await json('list')
    assert.equal(listed.position, await store.journalEnd())
    assert.deepEqual(listed.behind, { changes: 0, seconds: 0 })
    await store.createPlant({ id: 2n, name: 'x' })
    assert.equal((await json('list'))[0].behind.changes, 1)
  })

  it('list shows a table, with long values on lines of their own', async () => {
    const store = openStore()
    await store.receivers.add(
      newReceiver({
        id: 'whk_abcdefghijkl',
        url: `https://example.com/${'x'.repeat(500)}`,
        types: ['plant.created', 'plant.replaced', 'plant.deleted'],
        state: 'paused',
        reason: `because ${'y'.repeat(200)}`,
        progress: {
          position: 'p'.repeat(64),
          ahead: [],
          lastSuccessAt: Date.UTC(2026, 0, 1),
          lastFailureAt: Date.UTC(2026, 0, 2),
          lastFailure: `the reason \u001b[31m${'z'.repeat(200)}`,
          failingSince: undefined,
        },
      }),
    )
    const stdout = await says('list', 0, '')
    const [titles, row, ...details] = stdout.trimEnd().split('\n')
    assert.match(titles ?? '', /^ID +STATE +BEHIND +LAST SUCCESS +LAST FAILURE$/)
    assert.match(
      row ?? '',
      /^whk_abcdefghijkl +paused +0 \(0 s\) +2026-01-01T00:00:00\.000Z +2026-01-02T/,
    )
    const labels = details.map((line) => line.trim().split(' ')[0])
    assert.deepEqual(labels, ['url', 'types', 'position', 'reason', 'failure'])
    assert.equal(stdout.includes('\u001b'), false)
  })

  it('pause, resume and remove change a receiver', async () => {
    const { id } = await addOne()
    await says(`pause ${id}`, 0, `Receiver ${id} is paused.\n`)
    const [paused] = await json('list')
    assert.deepEqual([paused.state, paused.reason], ['paused', 'paused by the operator'])
    assert.deepEqual(await json(`resume ${id}`), { id, state: 'active' })
    const [resumed] = await json('list')
    assert.deepEqual([resumed.state, resumed.reason], ['active', null])
    assert.deepEqual(await json(`remove ${id}`), { id, state: 'removed' })
    assert.deepEqual(await json('list'), [])
    await says('list', 0, /^There is no receiver yet/)
  })

  it('rotate prints another secret and keeps the old one for a day', async () => {
    const { id, secret } = await addOne()
    const stdout = await says(`rotate ${id}`, 0, /^Receiver (?!.*whsec_)/)
    assert.match(stdout, /^whsec_[A-Za-z0-9+/]{43}=\n$/)
    assert.notEqual(stdout.trim(), secret)
    const [receiver] = await openStore().receivers.list()
    assert.deepEqual(
      [receiver?.secrets.current, receiver?.secrets.previous],
      [stdout.trim(), secret],
    )
    const leftMs = Number(receiver?.secrets.previousUntil) - Date.now()
    assert.ok(leftMs > 86_000_000 && leftMs <= 86_400_000)
  })

  it('failures and resend show and retry what was given up', async () => {
    const { id } = await addOne()
    assert.deepEqual(await json(`failures ${id}`), [])
    await says(`failures ${id}`, 0, `Receiver ${id} has no failures.\n`)
    await says(`resend ${id}`, 0, `Receiver ${id} has no failures to send again.\n`)
    const store = openStore()
    const failed = newDelivery({ position: 'p2', attempts: 11, dueAt: undefined, at: 0 })
    await store.receivers.addDelivery(id, failed)
    await store.receivers.addDelivery(id, { ...failed, position: 'p3', lastStatus: undefined })
    const view = {
      type: 'plant.created',
      at: '1970-01-01T00:00:00.000Z',
      attempts: 11,
      lastError: 'answered 500',
    }
    assert.deepEqual(await json(`failures ${id}`), [
      { position: 'p2', ...view, lastStatus: 500 },
      { position: 'p3', ...view, lastStatus: null },
    ])
    const table = await says(`failures ${id}`, 0, '')
    assert.match(table, /^POSITION +TYPE +AT +ATTEMPTS +LAST ERROR\np2 +plant\.created +1970-/)
    assert.deepEqual(await json(`resend ${id} p3`), { resent: 1 })
    assert.equal((await json(`failures ${id}`)).length, 1)
    await says(`resend ${id}`, 0, `Receiver ${id} gets 1 change again now.\n`)
    const waiting = await store.receivers.listDeliveries(id, 'waiting')
    assert.deepEqual(
      waiting.map(({ position, attempts, plantId }) => [position, attempts, plantId]),
      [
        ['p2', 0, 7n],
        ['p3', 0, 7n],
      ],
    )
    assert.equal((await json('list'))[0].behind.changes, 2)
  })

  it('resend sends any change that is still kept', async () => {
    const store = openStore()
    for (const id of [1n, 2n]) await store.createPlant({ id, name: `plant ${id}` })
    const [first, second] = (await readPage(store)).events
    const { id } = await addOne()
    assert.deepEqual(await json(`resend ${id} ${first?.position}`), { resent: 1 })
    const [resent] = await store.receivers.listDeliveries(id, 'waiting')
    assert.equal(resent?.body, '{"id":1,"name":"plant 1"}')
    await store.createPlant({ id: 3n, name: 'x' })
    while (!(await store.trimJournal(Date.now() + 1_000)));
    const said = /^The change at \S+ is no longer kept, or is none of this store/
    await says(`resend ${id} ${second?.position}`, 78, said)
  })

  it('test sends a marked, signed sample and prints what came back', async () => {
    const receiver = await openTestReceiver()
    const { id, secret } = await json(`add ${receiver.url}`)
    assert.match(await says(`test ${id}`, 0, ''), /^200 after \d+ ms\n$/)
    const [sample] = receiver.received
    assert.ok(sample)
    assert.equal(sample.event, 'plant.test')
    assert.equal(sample.body, '{"id":1,"name":"Monstera deliciosa","tag":"indoor"}')
    verify(sample, secret)
    receiver.answer = () => 503
    const said = `Receiver ${id} did not take it: answered 503.\n`
    assert.match(await says(`test ${id}`, 74, said), /^503 after \d+ ms\n$/)
    const { ms, ...answer } = JSON.parse(await says(`test ${id} --json`, 74, said))
    assert.deepEqual(answer, { id, status: 503, error: 'answered 503' })
    assert.equal(typeof ms, 'number')
  })

  it(`refuses receiver ${maxReceivers + 1}`, async () => {
    const store = openStore()
    for (let index = 0; index < maxReceivers; index++) {
      await store.receivers.add(newReceiver({ id: `whk_${index}` }))
    }
    const said = /^There are 100 receivers already/
    assert.equal(await says('add https://example.com', 78, said), '')
    assert.equal((await store.receivers.list()).length, maxReceivers)
  })

  /** Restores a backup of the store elsewhere. */
  async function restore() {
    await ends('backup backup.db --quiet', 0, '', options())
    const there = { folder, env: { DATABASE_URL: 'sqlite:restored.db' } }
    await ends('restore backup.db --quiet', 0, '', there)
    return there
  }

  it('is paused in a restored backup, and continues there where it was', async () => {
    const store = openStore()
    await store.createPlant({ id: 1n, name: 'x' })
    const { id } = await addOne()
    const failed = newDelivery({ position: await store.journalEnd(), dueAt: undefined })
    await store.receivers.addDelivery(id, failed)
    await store.createPlant({ id: 2n, name: 'x' })
    const there = await restore()
    const [listed] = await readJson('webhook list', there)
    assert.deepEqual(
      [listed.state, listed.reason, listed.behind.changes],
      ['paused', 'restored from a backup', 1],
    )
    const [failure] = await readJson(`webhook failures ${id}`, there)
    assert.equal(failure.position, listed.position)
    assert.notEqual(failure.position, failed.position)
    assert.equal((await json('list'))[0].state, 'active')
  })

  it('is paused in a restored backup, also if the journal is off there', async () => {
    const store = openStore()
    await addOne()
    await store.close()
    await openSqliteStore(path(), { journaling: 'off' }).close()
    await restore()
    const [receiver] = await openSqliteStore(join(folder, 'restored.db')).receivers.list()
    assert.deepEqual([receiver?.state, receiver?.reason], ['paused', 'restored from a backup'])
  })

  it('says that webhooks are off where the journal is', async () => {
    const off = openSqliteStore(path(), { journaling: 'off' })
    await off.close()
    for (const line of ['add https://example.com', 'list', 'resume whk_0']) {
      await says(line, 78, /^Webhooks are off, because JOURNAL_KEEP is off\./)
    }
  })
})
