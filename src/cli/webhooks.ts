import { randomUUID } from 'node:crypto'
import { type StoreConfig, WrongConfig } from '../config.ts'
import { isLoopback } from '../contract/loopback.ts'
import { testEvent, type WebhookType } from '../contract/webhooks.ts'
import { findEvent } from '../journal/reader.ts'
import { type Delivery, maxReceivers, type Receiver } from '../store/receivers.ts'
import { type Store, toPlantId } from '../store/store.ts'
import { deliver } from '../webhooks/delivery.ts'
import { findUrlMistake, newReceiver, newSecret, rotationMs } from '../webhooks/receiver.ts'
import { defaultSettings } from '../webhooks/settings.ts'
import { openTransport } from '../webhooks/transport.ts'
import type { Call, Printed } from './command.ts'
import { CommandFailed, exitCodes } from './exit.ts'
import { toCount } from './progress.ts'
import { countBehind, requireJournal, toReceiverView } from './receivers.ts'
import { toName } from './stores.ts'
import { toTable } from './terminal.ts'
import { toTime } from './tokens.ts'

interface NewReceiver {
  readonly types: WebhookType[] | undefined
  readonly from: string | undefined
}

/** Adds a receiver and prints its secret alone on standard output. */
export async function addReceiver(call: Call<NewReceiver, 'new store'>): Promise<Printed> {
  const { args, store, config } = call
  const { types = ['plant.created'], from } = call.flags
  const [url = ''] = args
  const mistake = findUrlMistake(url)
  // The URL itself is not repeated: it may hold a secret.
  if (mistake !== undefined) throw new WrongConfig([`The URL of the receiver ${mistake}.`])
  const end = requireJournal(await store.journalEnd())
  const position = await toBegin(store, from, end)
  const receiver = newReceiver({ url, types, position })
  if ((await store.receivers.add(receiver)) === 'too many') {
    throw new WrongConfig([
      `There are ${maxReceivers} receivers already, which is the most. Remove one: plant-store webhook remove ID`,
    ])
  }
  const secret = receiver.secrets.current
  const remark = `Receiver ${receiver.id} gets ${types.join(', ')}, signed with this secret, which is shown only once. Store: ${toName(config.storeLocation)}`
  return {
    text: secret,
    json: { secret, ...toReceiverView(receiver, { changes: 0, seconds: 0 }) },
    undo: () => store.receivers.remove(receiver.id),
    remarks: [remark, ...warnOfPlainHttp(url)],
  }
}

/** Warns that changes go to another machine unencrypted. */
function warnOfPlainHttp(address: string): string[] {
  const { protocol, hostname, host } = new URL(address)
  if (protocol !== 'http:' || isLoopback(hostname)) return []
  // The rest of the address may hold a secret.
  return [
    `Warning: the changes go to ${host} over plain HTTP, where others can read them. Use https.`,
  ]
}

/** The position after which a receiver begins. */
async function toBegin(store: Store, from = 'latest', end: string): Promise<string> {
  if (from === 'latest') return end
  if (from !== 'oldest' && (await store.readJournal(from, 1)) !== 'gone') return from
  throw new WrongConfig([
    '--from must be latest, or a position of this store that is still kept (see GET /events).',
  ])
}

/** The receiver that a command is about. */
async function findReceiver({ args: [id = ''], store, config }: Call): Promise<Receiver> {
  requireJournal(await store.newestPosition())
  const receiver = (await store.receivers.list()).find((one) => one.id === id)
  if (receiver === undefined) throw unknownReceiver(id, config)
  return receiver
}

function unknownReceiver(id: string, { storeLocation }: StoreConfig): WrongConfig {
  return new WrongConfig([
    `No receiver in ${toName(storeLocation)} has the id ${id}. See: plant-store webhook list`,
  ])
}

/** Stops sending until the receiver is resumed. */
export async function pauseReceiver(call: Call): Promise<Printed> {
  const { id } = await findReceiver(call)
  const change = { kind: 'pause', reason: 'paused by the operator' } as const
  return toChanged(call, id, await call.store.receivers.change(id, change), 'paused')
}

/** Continues where a paused receiver stopped. */
export async function resumeReceiver(call: Call): Promise<Printed> {
  const { id } = await findReceiver(call)
  return toChanged(call, id, await call.store.receivers.change(id, { kind: 'resume' }), 'active')
}

/** Removes a receiver and its pending deliveries. */
export async function removeReceiver(call: Call): Promise<Printed> {
  const { id } = await findReceiver(call)
  return toChanged(call, id, await call.store.receivers.remove(id), 'removed')
}

function toChanged({ config }: Call, id: string, outcome: string, state: string): Printed {
  if (outcome === 'unknown') throw unknownReceiver(id, config)
  return { json: { id, state }, note: `Receiver ${id} is ${state}.` }
}

/** Makes a new secret and prints it alone on standard output. The old one signs for a day more. */
export async function rotateSecret(call: Call): Promise<Printed> {
  const { id, secrets } = await findReceiver(call)
  const previousUntil = Date.now() + rotationMs
  const rotated = { current: newSecret(), previous: secrets.current, previousUntil }
  const set = (changed: typeof secrets) =>
    call.store.receivers.change(id, { kind: 'set secrets', secrets: changed })
  if ((await set(rotated)) === 'unknown') throw unknownReceiver(id, call.config)
  const secret = rotated.current
  const until = toTime(previousUntil)
  return {
    text: secret,
    json: { id, secret, previousUntil: until },
    undo: () => set(secrets),
    remarks: [`Receiver ${id} gets a second signature, with the old secret, until ${until}.`],
  }
}

const sample = '{"id":1,"name":"Monstera deliciosa","tag":"indoor"}'

/** Sends a signed sample to a receiver, and prints what came back. */
export async function testReceiver(call: Call): Promise<Printed> {
  const { id, url, secrets } = await findReceiver(call)
  const transport = openTransport({ url, timeoutMs: defaultSettings.timeoutMs })
  const startedAt = performance.now()
  const message = { id: `test-${randomUUID()}`, event: testEvent, body: sample }
  const { status = null, error = null } = await deliver(transport, secrets, message, () => true)
  transport.close()
  const ms = Math.round(performance.now() - startedAt)
  const text = `${status ?? 'no status'} after ${ms} ms`
  const printed = { text, json: { id, status, ms, error } }
  if (error === null) return printed
  const refusal = `Receiver ${id} did not take it: ${error}.`
  return { ...printed, failure: new CommandFailed(exitCodes.inputOutput, refusal) }
}

/** Lists the changes that a receiver did not take, and why. */
export async function listFailures(call: Call): Promise<Printed> {
  const receiver = await findReceiver(call)
  const failed = await call.store.receivers.listDeliveries(receiver.id, 'failed')
  const json = failed.map(toFailureView)
  if (json.length > 0) return { json, text: toFailureTable(json) }
  return { json, note: await describeRest(receiver, call.store) }
}

/** Says what is still to be delivered to a receiver without failures. */
async function describeRest(receiver: Receiver, store: Store): Promise<string> {
  const { id } = receiver
  const { changes } = await countBehind(store, receiver, Date.now())
  if (changes === 0) return `Receiver ${id} has taken every change so far.`
  const waiting = await store.receivers.listDeliveries(id, 'waiting')
  const retried = waiting.filter(({ attempts }) => attempts > 0).length
  const still = `${toCount(changes, 'changes')} ${changes === 1 ? 'is' : 'are'} still to be delivered`
  const retries = retried === 0 ? '' : `; ${retried} ${retried === 1 ? 'is' : 'are'} being retried`
  return `Receiver ${id} has no failures. ${still}${retries}.`
}

function toFailureView({ position, type, at, attempts, lastStatus, lastError }: Delivery) {
  return {
    position,
    type,
    at: toTime(at),
    attempts,
    lastStatus: lastStatus ?? null,
    lastError: lastError ?? null,
  }
}

function toFailureTable(views: readonly ReturnType<typeof toFailureView>[]): string {
  const titles = ['POSITION', 'TYPE', 'AT', 'ATTEMPTS', 'LAST ERROR']
  const rows = views.map(({ position, type, at, attempts, lastError }) => [
    position,
    type,
    at ?? '-',
    String(attempts),
    lastError ?? '-',
  ])
  return toTable([titles, ...rows]).join('\n')
}

/** Sends every failure again, or one change of the journal. */
export async function resend(call: Call): Promise<Printed> {
  const { id, state } = await findReceiver(call)
  const { store, config } = call
  const position = call.args[1]
  const failures = await store.receivers.retryFailures(id, Date.now(), position)
  const isOther = failures === 0 && position !== undefined
  if (isOther && (await resendEvent(id, position, store)) === 'unknown') {
    throw unknownReceiver(id, config)
  }
  const resent = isOther ? 1 : failures
  const when = state === 'paused' ? 'once it is resumed' : 'now'
  return {
    json: { resent },
    note: `Receiver ${id} gets ${toCount(resent, 'changes')} again ${when}.`,
  }
}

/** Sends a change that has not failed, or is no longer kept as a failure. */
async function resendEvent(id: string, position: string, store: Store) {
  const event = await findEvent(store, position)
  if (event === undefined) {
    throw new WrongConfig([
      `The change at ${position} is no longer kept, or is none of this store. Nothing was sent.`,
    ])
  }
  const { type, at, plantJson: body } = event
  const plantId = toPlantId(event)
  const first = { attempts: 0, dueAt: Date.now(), lastStatus: undefined, lastError: undefined }
  return store.receivers.addDelivery(id, { position, type, at, plantId, body, ...first })
}
