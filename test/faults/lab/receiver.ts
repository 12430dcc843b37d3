import assert from 'node:assert/strict'
import { openStore, toStoreLocation } from '../../../src/store/open.ts'
import { newReceiver } from '../../../src/webhooks/receiver.ts'
import { openTestReceiver, type TestReceiver } from '../../webhooks/test-receiver.ts'

/** Opens a receiver and adds it to the store at this URL, for changes of every type. */
export async function addTestReceiver(url: string): Promise<TestReceiver> {
  const location = toStoreLocation(url)
  assert.ok(location)
  const store = await openStore(location)
  const receiver = await openTestReceiver()
  const types = ['plant.created', 'plant.replaced', 'plant.deleted'] as const
  const position = await store.journalEnd()
  await store.receivers.add(newReceiver({ url: receiver.url, types, position }))
  await store.close()
  return receiver
}
