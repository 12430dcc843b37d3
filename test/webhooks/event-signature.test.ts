import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { Webhook } from 'standardwebhooks'
import { sqlite } from '../support/engines.ts'
import { openTestReceiver } from './test-receiver.ts'
import { add, openStores, start } from './test-sender.ts'

describe('the signature of the type of an event', () => {
  it('fits that type and no other', async () => {
    const { store } = await openStores(sqlite)
    const receiver = await openTestReceiver()
    const { secrets } = await add(store, receiver.url)
    start(store)
    await store.createPlant({ id: 1n, name: 'Fern' })
    await receiver.waitFor(1)
    const {
      'plant-event': event = '',
      'plant-event-signature': signature = '',
      ...headers
    } = receiver.received[0]?.headers ?? {}
    assert.equal(event, 'plant.created')
    const webhook = new Webhook(secrets.current)
    // The library of Standard Webhooks parses what it has verified, and a type is no JSON.
    const verify = (content: string) =>
      webhook.sign(
        String(headers['webhook-id']),
        new Date(Number(headers['webhook-timestamp']) * 1_000),
        content,
      )
    assert.equal(signature, verify(event))
    assert.notEqual(signature, verify('plant.deleted'))
  })
})
