import assert from 'node:assert/strict'
import { join } from 'node:path'
import { beforeEach, describe, it } from 'node:test'
import { maxReceivers } from '../../src/store/receivers.ts'
import { run } from '../support/command.ts'
import { newFolder } from '../support/folder.ts'
import { newDelivery, newReceiver } from '../support/receiver-record.ts'
import { startService } from '../support/service.ts'
import { openSqliteStore } from '../support/stores.ts'
import { openTestReceiver, verify } from '../webhooks/test-receiver.ts'

describe('plant-store webhook', () => {
  let folder: string
  beforeEach(async () => {
    folder = newFolder()
    openStore().close()
  })

  const path = () => join(folder, 'plants.db')
  const openStore = () => openSqliteStore(path())
  const webhook = (...args: string[]) =>
    run(['webhook', ...args], { folder, env: { DATABASE_URL: `sqlite:${path()}` } })
  const json = async (...args: string[]) => JSON.parse((await webhook(...args, '--json')).stdout)
  const addOne = (...args: string[]) => json('add', 'https://example.com/hook', ...args)

  it('add prints the secret alone, and nothing else shows it', async () => {
    const { exitCode, stdout, stderr } = await webhook('add', 'https://example.com/hook?key=1')
    assert.equal(exitCode, 0)
    assert.match(stdout, /^whsec_[A-Za-z0-9+/]{43}=\n$/)
    assert.match(stderr, /^Receiver whk_\w{12} gets plant\.created, signed with this secret/)
    assert.equal(stderr.includes('whsec_'), false)
    for (const args of [['list'], ['list', '--json']]) {
      const listed = await webhook(...args)
      assert.equal((listed.stdout + listed.stderr).includes('whsec_'), false)
    }
  })

  for (const [url, isWarned] of [
    ['http://hooks.example:8080/secret-path', true],
    ['http://10.0.0.7:3000/store', true],
    ['http://[fe80::1]', true],
    ['http://localhost.example', true],
    ['https://hooks.example', false],
    ['http://localhost:3000/a', false],
    ['http://plants.localhost', false],
    ['http://127.1.2.3', false],
    ['http://[::1]:3000', false],
  ] as const) {
    const title = isWarned ? 'warns that changes are not encrypted' : 'warns of nothing'
    it(`add ${title} on the way to ${url}, and does not show its path`, async () => {
      const { exitCode, stdout, stderr } = await webhook('add', url)
      const warning = `Warning: the changes go to ${new URL(url).host} over plain HTTP, where others can read them. Use https.\n`
      assert.equal(stderr.replace(/^Receiver .*\n/, ''), isWarned ? warning : '')
      assert.match(stdout, /^whsec_\S+\n$/)
      assert.equal(exitCode, 0)
    })
  }

  it('add takes types and a position, and list shows exactly what is promised', async () => {
    const store = openStore()
    for (const id of [1n, 2n, 3n]) await store.createPlant({ id, name: 'x' })
    const page = await store.readJournal('oldest', 1)
    assert.ok(typeof page === 'object')
    const types = 'plant.deleted, plant.created'
    const { secret, ...added } = await addOne('--types', types, '--from', page.end)
    assert.match(secret, /^whsec_/)
    const [listed] = await json('list')
    assert.deepEqual(Object.keys(listed), [
      'id',
      'url',
      'types',
      'state',
      'reason',
      'position',
      'behind',
      'createdAt',
      'lastSuccessAt',
      'lastFailureAt',
      'lastFailure',
    ])
    assert.deepEqual(
      { ...listed, behind: null },
      {
        ...added,
        url: 'https://example.com/hook',
        types: ['plant.created', 'plant.deleted'],
        state: 'active',
        reason: null,
        position: page.end,
        behind: null,
        lastSuccessAt: null,
        lastFailureAt: null,
        lastFailure: null,
      },
    )
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

  it('list shows a table of at most 100 columns', async () => {
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
    const { stdout } = await webhook('list')
    for (const line of stdout.split('\n')) assert.ok(line.length <= 100, line)
    const [titles, row, ...details] = stdout.trimEnd().split('\n')
    assert.match(titles ?? '', /^ID +STATE +BEHIND +LAST SUCCESS +LAST FAILURE$/)
    assert.match(
      row ?? '',
      /^whk_abcdefghijkl +paused +0 \(0 s\) +2026-01-01T00:00:00\.000Z +2026-01-02T/,
    )
    assert.deepEqual(
      details.map((line) => line.trim().split(' ')[0]),
      ['url', 'types', 'position', 'reason', 'failure'],
    )
    assert.equal(stdout.includes('\u001b'), false)
  })

  it('pause, resume and remove change a receiver', async () => {
    const { id } = await addOne()
    assert.equal((await webhook('pause', id)).stderr, `Receiver ${id} is paused.\n`)
    const [paused] = await json('list')
    assert.deepEqual([paused.state, paused.reason], ['paused', 'paused by the operator'])
    assert.deepEqual(await json('resume', id), { id, state: 'active' })
    const [resumed] = await json('list')
    assert.deepEqual([resumed.state, resumed.reason], ['active', null])
    assert.deepEqual(await json('remove', id), { id, state: 'removed' })
    assert.deepEqual(await json('list'), [])
    assert.match((await webhook('list')).stderr, /^There is no receiver yet/)
  })

  it('rotate prints another secret and keeps the old one for a day', async () => {
    const { id, secret } = await addOne()
    const { stdout, stderr } = await webhook('rotate', id)
    assert.match(stdout, /^whsec_[A-Za-z0-9+/]{43}=\n$/)
    assert.notEqual(stdout.trim(), secret)
    assert.equal(stderr.includes('whsec_'), false)
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
    assert.deepEqual(await json('failures', id), [])
    assert.match((await webhook('failures', id)).stderr, /has taken every change/)
    const none = `Receiver ${id} has no failures to send again.\n`
    assert.equal((await webhook('resend', id)).stderr, none)
    const store = openStore()
    const failed = newDelivery({ position: 'p2', attempts: 11, dueAt: undefined, at: 0 })
    await store.receivers.addDelivery(id, failed)
    await store.receivers.addDelivery(id, { ...failed, position: 'p3', lastStatus: undefined })
    assert.deepEqual(await json('failures', id), [
      {
        position: 'p2',
        type: 'plant.created',
        at: '1970-01-01T00:00:00.000Z',
        attempts: 11,
        lastStatus: 500,
        lastError: 'answered 500',
      },
      {
        position: 'p3',
        type: 'plant.created',
        at: '1970-01-01T00:00:00.000Z',
        attempts: 11,
        lastStatus: null,
        lastError: 'answered 500',
      },
    ])
    assert.match(
      (await webhook('failures', id)).stdout,
      /^POSITION +TYPE +AT +ATTEMPTS +LAST ERROR/,
    )
    assert.deepEqual(await json('resend', id, 'p3'), { resent: 1 })
    assert.equal((await json('failures', id)).length, 1)
    assert.equal((await webhook('resend', id)).stderr, `Receiver ${id} gets 1 change again now.\n`)
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

  it('failures tells what is still to be delivered or retried from what was taken', async () => {
    const store = openStore()
    const { id } = await addOne()
    await store.createPlant({ id: 1n, name: 'x' })
    assert.equal(
      (await webhook('failures', id)).stderr,
      `Receiver ${id} has no failures. 1 change is still to be delivered.\n`,
    )
    await store.receivers.addDelivery(id, newDelivery({ position: 'p2', attempts: 2 }))
    await store.receivers.addDelivery(id, newDelivery({ position: 'p3', attempts: 0 }))
    assert.equal(
      (await webhook('failures', id)).stderr,
      `Receiver ${id} has no failures. 3 changes are still to be delivered; 1 is being retried.\n`,
    )
    assert.deepEqual(await json('failures', id), [])
  })

  it('resend sends any change that is still kept', async () => {
    const store = openStore()
    for (const id of [1n, 2n]) await store.createPlant({ id, name: `plant ${id}` })
    const page = await store.readJournal('oldest', 10)
    assert.ok(typeof page === 'object')
    const { id } = await addOne()
    const position = String(page.events[0]?.position)
    assert.deepEqual(await json('resend', id, position), { resent: 1 })
    const [resent] = await store.receivers.listDeliveries(id, 'waiting')
    assert.equal(resent?.body, '{"id":1,"name":"plant 1"}')
    await store.createPlant({ id: 3n, name: 'x' })
    while (!(await store.trimJournal(Date.now() + 1_000)));
    const { exitCode, stderr } = await webhook('resend', id, String(page.events[1]?.position))
    assert.match(stderr, /^The change at \S+ is no longer kept, or is none of this store/)
    assert.equal(exitCode, 78)
  })

  it('test sends a marked, signed sample and prints what came back', async () => {
    const receiver = await openTestReceiver()
    const { id, secret } = await json('add', receiver.url)
    const { exitCode, stdout } = await webhook('test', id)
    assert.equal(exitCode, 0)
    assert.match(stdout, /^200 after \d+ ms\n$/)
    const [sample] = receiver.received
    assert.ok(sample)
    assert.equal(sample.event, 'plant.test')
    assert.equal(sample.body, '{"id":1,"name":"Monstera deliciosa","tag":"indoor"}')
    verify(sample, secret)
    receiver.answer = () => 503
    const failed = await webhook('test', id)
    assert.match(failed.stdout, /^503 after \d+ ms\n$/)
    assert.equal(failed.stderr, `Receiver ${id} did not take it: answered 503.\n`)
    assert.equal(failed.exitCode, 74)
    const { status, ms, error } = await json('test', id)
    assert.deepEqual([status, typeof ms, error], [503, 'number', 'answered 503'])
  })

  it('is acted on by a running service', async () => {
    const receiver = await openTestReceiver()
    const service = await startService(`sqlite:${path()}`)
    const { id } = await json('add', receiver.url)
    await service.create('{"id":12,"name":"Aloe"}')
    await receiver.waitFor(1)
    assert.equal(receiver.received[0]?.body, '{"id":12,"name":"Aloe"}')
    const [listed] = await json('list')
    assert.equal(listed.id, id)
    assert.doesNotMatch(service.log.join(''), /whsec_|\/hook/)
  })

  it(`refuses receiver ${maxReceivers + 1}`, async () => {
    const store = openStore()
    for (let index = 0; index < maxReceivers; index++) {
      await store.receivers.add(newReceiver({ id: `whk_${index}` }))
    }
    const { exitCode, stdout, stderr } = await webhook('add', 'https://example.com')
    assert.deepEqual([exitCode, stdout], [78, ''])
    assert.match(stderr, /^There are 100 receivers already/)
    assert.equal((await store.receivers.list()).length, maxReceivers)
  })

  it('is paused in a restored backup, and goes on there where it was', async () => {
    const store = openStore()
    await store.createPlant({ id: 1n, name: 'x' })
    const { id } = await addOne()
    const failed = newDelivery({ position: await store.journalEnd(), dueAt: undefined })
    await store.receivers.addDelivery(id, failed)
    await store.createPlant({ id: 2n, name: 'x' })
    const env = { DATABASE_URL: `sqlite:${path()}` }
    assert.equal((await run(['backup', 'backup.db'], { folder, env })).exitCode, 0)
    const restored = join(folder, 'restored.db')
    const there = { folder, env: { DATABASE_URL: `sqlite:${restored}` } }
    assert.equal((await run(['restore', 'backup.db'], there)).exitCode, 0)
    const [listed] = JSON.parse((await run(['webhook', 'list', '--json'], there)).stdout)
    assert.deepEqual(
      [listed.state, listed.reason, listed.behind.changes],
      ['paused', 'restored from a backup', 1],
    )
    const [failure] = JSON.parse((await run(['webhook', 'failures', id, '--json'], there)).stdout)
    assert.equal(failure.position, listed.position)
    assert.notEqual(failure.position, failed.position)
    assert.equal((await json('list'))[0].state, 'active')
  })

  it('is paused in a restored backup, also if the journal is off there', async () => {
    const store = openStore()
    await addOne()
    await store.close()
    await openSqliteStore(path(), { journaling: 'off' }).close()
    const env = { DATABASE_URL: `sqlite:${path()}` }
    assert.equal((await run(['backup', 'backup.db'], { folder, env })).exitCode, 0)
    const restored = join(folder, 'restored.db')
    const there = { folder, env: { DATABASE_URL: `sqlite:${restored}` } }
    assert.equal((await run(['restore', 'backup.db'], there)).exitCode, 0)
    const [receiver] = await openSqliteStore(restored).receivers.list()
    assert.deepEqual([receiver?.state, receiver?.reason], ['paused', 'restored from a backup'])
  })

  it('says that webhooks are off where the journal is', async () => {
    const off = openSqliteStore(path(), { journaling: 'off' })
    await off.close()
    const commands = [['add', 'https://example.com'], ['list'], ['resume', 'whk_0']]
    for (const args of commands) {
      const { exitCode, stderr } = await webhook(...args)
      assert.match(stderr, /^Webhooks are off, because JOURNAL_KEEP is off\./)
      assert.equal(exitCode, 78)
    }
  })
})
