import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { Webhook } from 'standardwebhooks'
import { webhookHeaders } from '../../src/contract/webhooks.ts'
import { sqlite } from '../support/engines.ts'
import { openTestReceiver } from './test-receiver.ts'
import { add, openStores, start } from './test-sender.ts'

const names = ['plant-event', 'webhook-id', 'webhook-signature', 'webhook-timestamp']
const ofHttp = ['connection', 'content-length', 'content-type', 'host', 'user-agent']

describe('the headers of a webhook', () => {
  it('are the declared ones and those of HTTP, and satisfy the library of Standard Webhooks', async () => {
    const { store } = await openStores(sqlite)
    const receiver = await openTestReceiver()
    const { secrets } = await add(store, receiver.url)
    start(store)
    await store.createPlant({ id: 1n, name: 'Fern' })
    await receiver.waitFor(1)
    const { headers = {}, body = '' } = receiver.received[0] ?? {}
    assert.deepEqual(Object.keys(headers).sort(), [...names, ...ofHttp].sort())
    const declared = Object.keys(webhookHeaders).map((name) => name.toLowerCase())
    assert.deepEqual(declared.sort(), names)
    assert.equal(headers['plant-event'], 'plant.created')
    const verified = new Webhook(secrets.current).verify(body, headers as Record<string, string>)
    assert.deepEqual(verified, { id: 1, name: 'Fern' })
  })
})
