import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { openStore, toStoreLocation } from '../../src/store/open.ts'
import { execute, oldJournals } from '../store/old-stores.ts'
import { closeAfterTest } from '../support/stores.ts'
import { openTestReceiver } from './test-receiver.ts'
import { start, waitForEnd } from './test-sender.ts'

interface Event {
  readonly position: string
  readonly type: string
  readonly plant: string
}

/** A text in SQL. */
const quote = (text: string) => `'${text.replaceAll("'", "''")}'`

/** What release 1.1.0 saves of a receiver that has read up to the end of the journal. */
function toSql(
  schema: string,
  url: string,
  { position, ahead, kept }: { position: string; ahead: Event[]; kept: [Event, dueAt: string][] },
): string {
  const positions = ahead.map((event) => event.position).join(' ')
  const deliveries = kept.map(([event, dueAt]) => {
    const [, id = ''] = /^\{"id":(-?\d+),/.exec(event.plant) ?? []
    const { name, tag } = JSON.parse(event.plant)
    const content = `${quote(name)}, ${tag === undefined ? 'NULL' : quote(tag)}`
    return `INSERT INTO ${schema}deliveries (receiver_id, position, type, at, plant_id, name, tag,
      attempts, due_at, last_status, last_error) VALUES ('whk_1', ${quote(event.position)},
      ${quote(event.type)}, 1, ${id}, ${content}, 3, ${dueAt}, 500, 'answered 500');`
  })
  return `INSERT INTO ${schema}receivers (id, url, types, secret, state, created_at, position, ahead)
    VALUES ('whk_1', ${quote(url)}, 'plant.created plant.replaced plant.deleted',
      'whsec_MQ==', 'active', 1, ${quote(position)}, ${quote(positions)});
    ${deliveries.join('\n')}`
}

for (const { name, expected, newUrl } of oldJournals) {
  describe(`the receivers of release 1.1.0 on ${name}`, () => {
    it('get what was not saved as done, once, with the bodies that were kept', async () => {
      const events = expected.events
      const [first, ...rest] = events
      assert.ok(first !== undefined && rest.length > 8)
      // Kept out of order, as deliveries fail.
      const waiting = [rest[6], rest[1], rest[4]] as Event[]
      const failed = [rest[2]] as Event[]
      const done = [rest[0], rest[5], rest.at(-1)] as Event[]
      const ahead = [...done, ...waiting, ...failed]
      const receiver = await openTestReceiver()
      const url = await newUrl()
      const kept: [Event, string][] = [
        ...waiting.map((event): [Event, string] => [event, '1']),
        ...failed.map((event): [Event, string] => [event, 'NULL']),
      ]
      const { position } = first
      await execute(url, (schema) => toSql(schema, receiver.url, { position, ahead, kept }))
      const store = await openStore(toStoreLocation(url) ?? assert.fail())
      closeAfterTest(store)
      const listed = await store.receivers.listDeliveries('whk_1', 'waiting')
      assert.deepEqual(
        listed.map((delivery) => delivery.position),
        [rest[1], rest[4], rest[6]].map((event) => event?.position),
      )
      // Room for a few at a time, so that one step does not take all.
      start(store, { keptDeliveries: 5 })
      const wanted = rest.filter((event) => !done.includes(event) && !failed.includes(event))
      await receiver.waitFor(wanted.length)
      await store.createPlant({ id: 77n, name: 'new' })
      await receiver.waitFor(wanted.length + 1)
      assert.equal(receiver.received.length, wanted.length + 1)
      const bodies = new Map(receiver.received.map(({ id, body }) => [id, body]))
      for (const { position, plant } of wanted) assert.equal(bodies.get(position), plant)
      await waitForEnd(store, 'whk_1')
      const [found] = await store.receivers.list()
      assert.deepEqual(found?.progress.ahead, [])
      const failures = await store.receivers.listDeliveries('whk_1', 'failed')
      assert.deepEqual(
        failures.map(({ position, attempts, body }) => [position, attempts, body]),
        failed.map(({ position, plant }) => [position, 3, plant]),
      )
    })
  })
}
