import { randomUUID } from 'node:crypto'
import { type Config, WrongConfig } from '../config.ts'
import { testEvent, type WebhookType, webhookTypes } from '../contract/webhooks.ts'
import { findEvent } from '../journal/reader.ts'
import { maxReceivers, type ReceiverStore } from '../store/receivers.ts'
import { type Store, toPlant } from '../store/store.ts'
import { deliver } from '../webhooks/delivery.ts'
import { findUrlMistake, newReceiver, newSecret, rotationMs } from '../webhooks/receiver.ts'
import { defaultSettings } from '../webhooks/settings.ts'
import { openTransport } from '../webhooks/transport.ts'
import { CommandFailed, exitCodes } from './exit.ts'
import type { JsonFlags } from './flags.ts'
import { toCount } from './progress.ts'
import { requireJournal, toReceiverView, unknownReceiver, withReceiver } from './receivers.ts'
import { requireExistingOrNamed, toName, withStore } from './stores.ts'
import { describePlainHttp, printOrUndo, type Terminal } from './terminal.ts'
import { toTime } from './tokens.ts'

interface AddFlags {
  readonly types?: string
  readonly from?: string
  readonly create?: boolean
  readonly json?: boolean
}

/** Adds a receiver and prints its secret alone on standard output. */
export async function addReceiver(
  url: string,
  flags: AddFlags,
  config: Config,
  terminal: Terminal,
): Promise<void> {
  const types = toTypes(url, flags)
  requireExistingOrNamed(config, flags)
  await withStore(config, async (store) => {
    const end = await requireJournal(store, config)
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
    await printOrUndo(
      () => terminal.print(`${text}\n`),
      () => store.receivers.remove(receiver.id),
    )
    terminal.tell(
      `Receiver ${receiver.id} gets ${types.join(', ')}, signed with this secret, which is shown only once. Store: ${toName(config.storeLocation)}`,
    )
    const warning = describePlainHttp('the changes', url)
    if (warning !== undefined) terminal.tell(warning)
  })
}

/** Checks the arguments, and returns the types. */
function toTypes(url: string, { types }: AddFlags): WebhookType[] {
  const mistakes: string[] = []
  const mistake = findUrlMistake(url)
  // The URL itself is not repeated: it may hold a secret.
  if (mistake !== undefined) mistakes.push(`The URL of the receiver ${mistake}.`)
  const wanted = types?.split(',').map((part) => part.trim()) ?? ['plant.created']
  if (!wanted.every((part) => (webhookTypes as readonly string[]).includes(part))) {
    mistakes.push(`--types must be one or more of ${webhookTypes.join(', ')}, separated by commas.`)
  }
  if (mistakes.length > 0) throw new WrongConfig(mistakes)
  return webhookTypes.filter((known) => wanted.includes(known))
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
  return (id: string, flags: JsonFlags, config: Config, terminal: Terminal): Promise<void> =>
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
  config: Config,
  terminal: Terminal,
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
    await printOrUndo(
      () => terminal.print(`${text}\n`),
      () => set(secrets),
    )
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
  config: Config,
  terminal: Terminal,
): Promise<void> {
  const { url, secrets } = await withReceiver(id, config, async (receiver) => receiver)
  const { timeoutMs } = defaultSettings
  const transport = openTransport({ url, connections: 1, timeoutMs })
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

/** Sends every failure again, or one change of the journal. */
export async function resend(
  id: string,
  position: string | undefined,
  flags: JsonFlags,
  config: Config,
  terminal: Terminal,
): Promise<void> {
  await withReceiver(id, config, async (receiver, store) => {
    const resent = await (position === undefined
      ? store.receivers.retryFailures(id, Date.now())
      : resendOne(id, position, store))
    if (flags.json) await terminal.print(`${JSON.stringify({ resent })}\n`)
    else {
      const when = receiver.state === 'paused' ? 'once it is resumed' : 'now'
      terminal.tell(`Receiver ${id} gets ${toCount(resent, 'changes')} again ${when}.`)
    }
  })
}

async function resendOne(id: string, position: string, store: Store): Promise<number> {
  const failures = await store.receivers.listDeliveries(id, 'failed')
  const failure = failures.find((one) => one.position === position)
  const found = failure ?? (await findEvent(store, position))
  if (found === undefined) {
    throw new WrongConfig([
      `The change at ${position} is no longer kept, or is none of this store. Nothing was sent.`,
    ])
  }
  const { type, at } = found
  const [plantId, body] =
    'plantJson' in found ? [toPlant(found).id, found.plantJson] : [found.plantId, undefined]
  const first = { attempts: 0, dueAt: Date.now(), lastStatus: undefined, lastError: undefined }
  await store.receivers.addDelivery(id, { position, type, at, plantId, body, ...first })
  return 1
}
