import { randomUUID } from 'node:crypto'
import { WrongConfig } from '../config.ts'
import { isLoopback } from '../contract/loopback.ts'
import { testEvent, type WebhookType, webhookTypes } from '../contract/webhooks.ts'
import { findEvent } from '../journal/reader.ts'
import {
  type Delivery,
  maxReceivers,
  type Receiver,
  type ReceiverStore,
} from '../store/receivers.ts'
import { type Store, toPlantId } from '../store/store.ts'
import { deliver } from '../webhooks/delivery.ts'
import { findUrlMistake, newReceiver, newSecret, rotationMs } from '../webhooks/receiver.ts'
import { defaultSettings } from '../webhooks/settings.ts'
import { openTransport } from '../webhooks/transport.ts'
import { CommandFailed, exitCodes } from './exit.ts'
import { type JsonFlags, pickNames } from './flags.ts'
import { toCount } from './progress.ts'
import {
  countBehind,
  requireJournal,
  toReceiverView,
  unknownReceiver,
  withReceiver,
} from './receivers.ts'
import { requireExistingOrNamed, toName, withStore } from './stores.ts'
import { type Context, printOrUndo, type Terminal, toTable } from './terminal.ts'
import { toTime } from './tokens.ts'

interface AddFlags extends JsonFlags {
  readonly types?: string
  readonly from?: string
  readonly create?: boolean
}

/** Adds a receiver and prints its secret alone on standard output. */
export async function addReceiver(
  url: string,
  flags: AddFlags,
  { config, terminal }: Context,
): Promise<void> {
  const types = toTypes(url, flags)
  requireExistingOrNamed(config, flags)
  await withStore(config.storeLocation, async (store) => {
    const end = requireJournal(await store.journalEnd())
    const position = await toBegin(store, flags.from, end)
    const receiver = newReceiver({ url, types, position })
    if ((await store.receivers.add(receiver)) === 'too many') {
      throw new WrongConfig([
        `There are ${maxReceivers} receivers already, which is the most. Remove one: plant-store webhook remove ID`,
      ])
    }
    const secret = receiver.secrets.current
    const view = { secret, ...toReceiverView(receiver, { changes: 0, seconds: 0 }) }
    const text = flags.json ? JSON.stringify(view, null, 2) : secret
    await printOrUndo(terminal, `${text}\n`, () => store.receivers.remove(receiver.id))
    terminal.tell(
      `Receiver ${receiver.id} gets ${types.join(', ')}, signed with this secret, which is shown only once. Store: ${toName(config.storeLocation)}`,
    )
    warnOfPlainHttp(url, terminal)
  })
}

/** Warns that changes go to another machine unencrypted. */
function warnOfPlainHttp(address: string, { tell }: Terminal): void {
  const { protocol, hostname, host } = new URL(address)
  if (protocol !== 'http:' || isLoopback(hostname)) return
  // The rest of the address may hold a secret.
  tell(`Warning: the changes go to ${host} over plain HTTP, where others can read them. Use https.`)
}

/** Checks the arguments, and returns the types. */
function toTypes(url: string, { types = 'plant.created' }: AddFlags): WebhookType[] {
  const mistakes: string[] = []
  const mistake = findUrlMistake(url)
  // The URL itself is not repeated: it may hold a secret.
  if (mistake !== undefined) mistakes.push(`The URL of the receiver ${mistake}.`)
  const wanted = pickNames(types, webhookTypes)
  if (wanted !== undefined && mistakes.length === 0) return wanted
  if (wanted === undefined) {
    mistakes.push(`--types must be one or more of ${webhookTypes.join(', ')}, separated by commas.`)
  }
  throw new WrongConfig(mistakes)
}

/** The position after which a receiver begins. */
async function toBegin(store: Store, from = 'latest', end: string): Promise<string> {
  if (from === 'latest') return end
  if (from !== 'oldest' && (await store.readJournal(from, 1)) !== 'gone') return from
  throw new WrongConfig([
    '--from must be latest, or a position of this store that is still kept (see GET /events).',
  ])
}

/** Stops sending until the receiver is resumed. */
export const pauseReceiver = buildChange('paused', (receivers, id) =>
  receivers.change(id, { kind: 'pause', reason: 'paused by the operator' }),
)

/** Continues where a paused receiver stopped. */
export const resumeReceiver = buildChange('active', (receivers, id) =>
  receivers.change(id, { kind: 'resume' }),
)

/** Removes a receiver and its pending deliveries. */
export const removeReceiver = buildChange('removed', (receivers, id) => receivers.remove(id))

/** A command that brings a receiver into a state. */
function buildChange(
  state: 'active' | 'paused' | 'removed',
  change: (receivers: ReceiverStore, id: string) => Promise<'changed' | 'removed' | 'unknown'>,
) {
  return (id: string, flags: JsonFlags, { config, terminal }: Context): Promise<void> =>
    withReceiver(id, config, async (_, { receivers }) => {
      if ((await change(receivers, id)) === 'unknown') throw unknownReceiver(id, config)
      if (flags.json) await terminal.print(`${JSON.stringify({ id, state })}\n`)
      else terminal.tell(`Receiver ${id} is ${state}.`)
    })
}

/** Makes a new secret and prints it alone on standard output. The old one signs for a day more. */
export async function rotateSecret(
  id: string,
  flags: JsonFlags,
  { config, terminal }: Context,
): Promise<void> {
  await withReceiver(id, config, async ({ secrets }, store) => {
    const previousUntil = Date.now() + rotationMs
    const rotated = { current: newSecret(), previous: secrets.current, previousUntil }
    const set = (changed: typeof secrets) =>
      store.receivers.change(id, { kind: 'set secrets', secrets: changed })
    if ((await set(rotated)) === 'unknown') throw unknownReceiver(id, config)
    const secret = rotated.current
    const view = { id, secret, previousUntil: toTime(previousUntil) }
    const text = flags.json ? JSON.stringify(view, null, 2) : secret
    await printOrUndo(terminal, `${text}\n`, () => set(secrets))
    terminal.tell(
      `Receiver ${id} gets a second signature, with the old secret, until ${view.previousUntil}.`,
    )
  })
}

const sample = '{"id":1,"name":"Monstera deliciosa","tag":"indoor"}'

/** Sends a signed sample to a receiver, and prints what came back. */
export async function testReceiver(
  id: string,
  flags: JsonFlags,
  { config, terminal }: Context,
): Promise<void> {
  const { url, secrets } = await withReceiver(id, config, async (receiver) => receiver)
  const { timeoutMs } = defaultSettings
  const transport = openTransport({ url, timeoutMs })
  const startedAt = performance.now()
  const message = { id: `test-${randomUUID()}`, event: testEvent, body: sample }
  const { status = null, error = null } = await deliver(transport, secrets, message, () => true)
  transport.close()
  const ms = Math.round(performance.now() - startedAt)
  if (flags.json) await terminal.print(`${JSON.stringify({ id, status, ms, error })}\n`)
  else await terminal.print(`${status ?? 'no status'} after ${ms} ms\n`)
  if (error !== null) {
    throw new CommandFailed(exitCodes.inputOutput, `Receiver ${id} did not take it: ${error}.`)
  }
}

/** Lists the changes that a receiver did not take, and why. */
export async function listFailures(
  id: string,
  flags: JsonFlags,
  { config, terminal }: Context,
): Promise<void> {
  await withReceiver(id, config, async (receiver, store) => {
    const views = (await store.receivers.listDeliveries(id, 'failed')).map(toFailureView)
    if (flags.json) await terminal.print(`${JSON.stringify(views, null, 2)}\n`)
    else if (views.length === 0) terminal.tell(await describeRest(receiver, store))
    else await terminal.print(toFailureTable(views))
  })
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
  const rows = views.map((view) => [
    view.position,
    view.type,
    view.at ?? '-',
    String(view.attempts),
    view.lastError ?? '-',
  ])
  return `${toTable([titles, ...rows]).join('\n')}\n`
}

/** Sends every failure again, or one change of the journal. */
export async function resend(
  id: string,
  position: string | undefined,
  flags: JsonFlags,
  { config, terminal }: Context,
): Promise<void> {
  await withReceiver(id, config, async (receiver, store) => {
    const failures = await store.receivers.retryFailures(id, Date.now(), position)
    const isOther = failures === 0 && position !== undefined
    if (isOther && (await resendEvent(id, position, store)) === 'unknown') {
      throw unknownReceiver(id, config)
    }
    const resent = isOther ? 1 : failures
    if (flags.json) await terminal.print(`${JSON.stringify({ resent })}\n`)
    else {
      const when = receiver.state === 'paused' ? 'once it is resumed' : 'now'
      terminal.tell(`Receiver ${id} gets ${toCount(resent, 'changes')} again ${when}.`)
    }
  })
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
