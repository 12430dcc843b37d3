import assert from 'node:assert/strict'
import type { Logger } from 'pino'
import type { WebhookType } from '../../src/contract/webhooks.ts'
import { buildReader } from '../../src/journal/reader.ts'
import type { Receiver } from '../../src/store/receivers.ts'
import type { Store } from '../../src/store/store.ts'
import { newReceiver } from '../../src/webhooks/receiver.ts'
import { openSender, type Sender, type SenderSettings } from '../../src/webhooks/sender.ts'
import type { Engine } from '../support/engines.ts'
import { releaseAfterTest, runOnce } from '../support/release.ts'
import { waitUntil } from '../support/wait.ts'
import { openTestReceiver } from './test-receiver.ts'

/** Times that keep a test short. */
const short: Partial<SenderSettings> = { retryDelaysMs: Array(10).fill(1), pollMs: 5, renewMs: 50 }

const quiet = { debug() {}, info() {}, warn() {} } as never

/** A running receiver, and what the store knows of it: in this store, or on a new database. */
export async function prepare(on: Engine | Store, options?: { types?: WebhookType[] }) {
  const store = 'newUrl' in on ? await on.open(await on.newUrl()) : on
  const receiver = await openTestReceiver()
  return { store, receiver, ...(await add(store, receiver.url, options)) }
}

/** Adds a receiver from now on. It is removed with the test. */
export async function add(
  store: Store,
  url: string,
  { types = ['plant.created'] }: { types?: WebhookType[] } = {},
): Promise<Receiver> {
  const position = await store.journalEnd()
  const receiver = newReceiver(url, types, position)
  await store.receivers.add(receiver)
  releaseAfterTest(() => store.receivers.remove(receiver.id))
  return receiver
}

/** Starts a sender with short times. It is closed with the test. */
export function start(store: Store, settings: Partial<SenderSettings> = {}): Sender {
  const close = runOnce(openTestSender(store, settings).close)
  releaseAfterTest(close)
  return { close }
}

/** Starts a sender with short times, which the caller closes. */
export function openTestSender(
  store: Store,
  settings: Partial<SenderSettings> = {},
  logger: Pick<Logger, 'debug' | 'info' | 'warn'> = quiet,
): Sender {
  return openSender({
    store,
    reader: buildReader(store),
    logger,
    settings: { ...short, ...settings },
  })
}

/** A receiver as the store has it now. */
export async function find(store: Store, id: string): Promise<Receiver> {
  return (await store.receivers.list()).find((one) => one.id === id) ?? assert.fail()
}

/** Waits until the receiver is paused. */
export function waitForPause(store: Store, id: string): Promise<void> {
  return waitUntil(async () => (await find(store, id)).state === 'paused', 'it is paused')
}

/** Waits until the receiver has been saved as being at the end of the journal. */
export function waitForEnd(store: Store, id: string): Promise<void> {
  const position = async () => (await find(store, id)).progress.position
  const isSaved = async () => (await position()) === (await store.journalEnd())
  return waitUntil(isSaved, 'the position is saved')
}

/** Waits until no change waits for the receiver. */
export function waitForNone(store: Store, id: string): Promise<void> {
  const isNone = async () => (await store.receivers.listDeliveries(id, 'waiting')).length === 0
  return waitUntil(isNone, 'nothing waits')
}

/** The store, with these methods for its receivers instead of its own. */
export function replaceMethods(store: Store, methods: Partial<Store['receivers']>): Store {
  return { ...store, receivers: { ...store.receivers, ...methods } }
}

/**
 * A store looks for changes by itself, later. This one announces each only when it is told to:
 * `announce` returns how, once the journal is watched.
 */
export function announceByHand(store: Store) {
  let announce: (() => void) | undefined
  const watchJournal: Store['watchJournal'] = (onChange) => {
    announce = onChange
    return () => {}
  }
  return { store: { ...store, watchJournal }, announce: () => announce }
}

/** Creates plants with consecutive ids at once. */
export async function createMany(store: Store, first: bigint, count: number): Promise<void> {
  await Promise.all(
    Array.from({ length: count }, (_, index) =>
      store.createPlant({ id: first + BigInt(index), name: `plant ${index}` }),
    ),
  )
}

/** Counts how often the sender reads the receivers, the deliveries of one, and the journal. */
export function countReads(store: Store) {
  const counts = { receivers: 0, deliveries: 0, pages: 0 }
  const counted = (name: keyof typeof counts, reading: Promise<unknown>) =>
    reading.then((read) => {
      counts[name]++
      return read as never
    })
  const { list, listDeliveries } = store.receivers
  const receivers = replaceMethods(store, {
    list: () => counted('receivers', list()),
    listDeliveries: (...asked) => counted('deliveries', listDeliveries(...asked)),
  })
  const readJournal: Store['readJournal'] = (...place) =>
    counted('pages', store.readJournal(...place))
  return { store: { ...receivers, readJournal }, counts }
}
