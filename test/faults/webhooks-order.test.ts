import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { WebhookType } from '../../src/contract/webhooks.ts'
import type { Receiver } from '../../src/store/receivers.ts'
import type { Store } from '../../src/store/store.ts'
import { engines } from '../support/engines.ts'
import { waitUntil } from '../support/wait.ts'
import { openTestReceiver, type TestReceiver } from '../webhooks/test-receiver.ts'
import { add, createMany, openStores, start } from '../webhooks/test-sender.ts'
import { type SenderProcess, startSender } from './lab/sender-process.ts'

const anyVersion = { match: undefined, noneMatch: undefined }
const types: WebhookType[] = ['plant.created', 'plant.replaced']
/** The plant whose changes have to stay in order. */
const plant = 1n
const changes = ['first', 'second', 'third', 'fourth']

/** A store with a receiver, and a sender in another process that delivers to it. */
interface Setting {
  readonly store: Store
  readonly receiver: TestReceiver
  readonly added: Receiver
  readonly sender: SenderProcess
  /** Creates other plants after everything so far, and waits until they were taken. */
  takeOthers(count: number): Promise<void>
}

/**
 * How later changes of a plant come behind one that stays on its way. Each returns with the first
 * change unanswered, and everything that the sender saves of the others saved: it has at most 16
 * on their way or unsaved.
 */
const histories: Record<string, (setting: Setting) => Promise<void>> = {
  'many others are taken while the first is on its way': async (setting) => {
    holdFirst(setting, new Promise(() => {}))
    await setting.store.createPlant({ id: plant, name: 'first' })
    await setting.takeOthers(40)
    await replace(setting.store, 'second')
    await setting.takeOthers(30)
    await replace(setting.store, 'third')
    await setting.takeOthers(20)
    await replace(setting.store, 'fourth')
    await setting.takeOthers(20)
  },

  'one comes while a failure of the first is being saved': async (setting) => {
    const { store, receiver, sender } = setting
    const answer = Promise.withResolvers<number>()
    holdFirst(setting, answer.promise)
    await store.createPlant({ id: plant, name: 'first' })
    await replace(store, 'second')
    await setting.takeOthers(40)
    // Otherwise the save to be held may have most of the 16 that may be unsaved.
    await waitUntil(async () => (await listWaiting(setting)).length === 2, 'others are saved')
    sender.tell('hold saves')
    await sender.hear('saves wait')
    holdFirst(setting, new Promise(() => {}))
    answer.resolve(500)
    await sender.hear('a save is held')
    await replace(store, 'third')
    await setting.takeOthers(4)
    sender.tell('let saves go')
    await replace(store, 'fourth')
    await setting.takeOthers(40)
    const attempts = () => receiver.received.filter(({ plantId }) => plantId === String(plant))
    await waitUntil(() => attempts().length === 2, 'the first change is tried again')
  },
}

/** Ways to end the work of the sender while the first change is on its way, and to begin again. */
const interruptions: Record<string, (setting: Setting) => Promise<void>> = {
  'kill -9 and a restart': (setting) => restart(setting, 'SIGKILL'),
  'SIGTERM and a restart': (setting) => restart(setting, 'SIGTERM'),

  async 'pause and resume'({ store, receiver, added }) {
    await store.receivers.change(added.id, { kind: 'pause', reason: 'for a test' })
    // Added last: who delivers to it knows of the pause.
    const witness = await openTestReceiver()
    await add(store, witness.url)
    await store.createPlant({ id: 100_000n, name: 'for the witness' })
    await witness.waitFor(1)
    letGo(receiver)
    await store.receivers.change(added.id, { kind: 'resume' })
  },
}

for (const engine of engines) {
  describe(`changes of one plant on ${engine.name}`, () => {
    for (const [history, happen] of Object.entries(histories)) {
      for (const [interruption, interrupt] of Object.entries(interruptions)) {
        it(`arrive in order after ${interruption}, where ${history}`, async () => {
          const { url, store } = await openStores(engine)
          const receiver = await openTestReceiver()
          const added = await add(store, receiver.url, { types })
          const sender = await startSender(url)
          let others = 0
          const setting: Setting = {
            store,
            receiver,
            added,
            sender,
            async takeOthers(count) {
              await createMany(store, 1_000n + BigInt(others), count)
              others += count
              await receiver.waitFor(others)
            },
          }
          await happen(setting)
          await interrupt(setting)
          await waitUntil(
            () => changes.every((name) => listSeen(receiver).includes(name)),
            'all arrive',
          )
          assert.deepEqual(listSeen(receiver), changes)
          assert.deepEqual(receiver.together, [])
        })
      }
    }
  })
}

/** Holds back the next answer about the plant; all others are a success. */
function holdFirst({ receiver }: Setting, answer: Promise<number>): void {
  const gate = Promise.withResolvers<number>()
  gates.set(receiver, gate)
  receiver.answer = ({ plantId }) =>
    plantId === String(plant) ? Promise.race([answer, gate.promise]) : 200
}

const gates = new WeakMap<TestReceiver, PromiseWithResolvers<number>>()

/** Answers what is held back, and whatever comes from now on. */
function letGo(receiver: TestReceiver): void {
  receiver.answer = () => 200
  gates.get(receiver)?.resolve(200)
}

function listWaiting({ store, added }: Setting) {
  return store.receivers.listDeliveries(added.id, 'waiting')
}

function replace(store: Store, name: string) {
  return store.replacePlant({ id: plant, name }, anyVersion)
}

async function restart(
  { store, receiver, sender }: Setting,
  signal: NodeJS.Signals,
): Promise<void> {
  await sender.end(signal)
  // Forgets the request that nobody waits for any more.
  await receiver.restart()
  letGo(receiver)
  start(store)
}

/** What the receiver has seen of the plant, in order; repeats of a change count once. */
function listSeen({ received }: TestReceiver): string[] {
  return received
    .filter(({ plantId }) => plantId === String(plant))
    .map(({ body }) => JSON.parse(body).name)
    .filter((name, index, names) => name !== names[index - 1])
}
