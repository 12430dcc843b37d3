import assert from 'node:assert/strict'
import type { Logger } from 'pino'
import type { WebhookType } from '../../src/contract/webhooks.ts'
import { buildReader } from '../../src/journal/reader.ts'
import type { Receiver } from '../../src/store/receivers.ts'
import type { Store } from '../../src/store/store.ts'
import { newReceiver } from '../../src/webhooks/receiver.ts'
import { openSender, type Sender } from '../../src/webhooks/sender.ts'
import type { SenderSettings } from '../../src/webhooks/settings.ts'
import type { Engine } from '../support/engines.ts'
import { releaseAfterTest, runOnce } from '../support/release.ts'

/** Times that keep a test short. */
const short: Partial<SenderSettings> = { retryDelaysMs: Array(10).fill(1), pollMs: 5, renewMs: 50 }

const quiet = { debug() {}, info() {}, warn() {} } as never

/** A new database with a store on it. */
export async function openStores(engine: Engine) {
  const url = await engine.newUrl()
  return { url, store: await engine.open(url) }
}

/** Adds a receiver from now on. It is removed with the test. */
export async function add(
  store: Store,
  url: string,
  { types = ['plant.created'] }: { types?: WebhookType[] } = {},
): Promise<Receiver> {
  const position = await store.journalEnd()
  const receiver = newReceiver({ url, types, position })
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

/**
 * A receiver as the store has it now. What it has taken beyond the oldest delivery that waits is
 * ahead, and was saved.
 */
export async function find(store: Store, id: string): Promise<Receiver> {
  const receiver = (await store.receivers.list()).find((one) => one.id === id)
  assert.ok(receiver)
  const waiting = await store.receivers.listDeliveries(id, 'waiting')
  const [oldest] = waiting
  if (oldest === undefined) return receiver
  const page = await store.readJournal(oldest.position, 1_000)
  assert.ok(typeof page === 'object')
  const read = page.events.map(({ position }) => position)
  const taken = read.slice(0, read.indexOf(receiver.progress.position) + 1)
  const ahead = taken.filter((position) => waiting.every((one) => one.position !== position))
  return { ...receiver, progress: { ...receiver.progress, ahead } }
}

/** Creates plants with consecutive ids at once. */
export async function createMany(store: Store, first: bigint, count: number): Promise<void> {
  await Promise.all(
    Array.from({ length: count }, (_, index) =>
      store.createPlant({ id: first + BigInt(index), name: `plant ${index}` }),
    ),
  )
}

/** The store, and how often its journal was read through it. */
export function countReads(store: Store): { store: Store; reads: () => number } {
  let reads = 0
  const counted: Store = {
    ...store,
    readJournal(...place) {
      reads++
      return store.readJournal(...place)
    },
  }
  return { store: counted, reads: () => reads }
}

/** Counts how often the sender reads the receivers, and the deliveries of one. */
export function countLists(store: Store) {
  const counts = { receivers: 0, deliveries: 0 }
  const receivers: Store['receivers'] = {
    ...store.receivers,
    async list() {
      const listed = await store.receivers.list()
      counts.receivers++
      return listed
    },
    async listDeliveries(...asked) {
      const listed = await store.receivers.listDeliveries(...asked)
      counts.deliveries++
      return listed
    },
  }
  return { store: { ...store, receivers }, counts }
}
