import { randomUUID } from 'node:crypto'
import { type StoreConfig, WrongConfig } from '../config.ts'
import { isLoopback } from '../contract/loopback.ts'
import { testEvent } from '../contract/webhooks.ts'
import { findEvent } from '../journal/reader.ts'
import { type Delivery, maxReceivers, type Receiver } from '../store/receivers.ts'
import { type Position, type Store, toPlantId } from '../store/store.ts'
import { deliver } from '../webhooks/delivery.ts'
import { findUrlMistake, newReceiver, newSecret, rotationMs } from '../webhooks/receiver.ts'
import { defaultSettings } from '../webhooks/settings.ts'
import { openTransport } from '../webhooks/transport.ts'
import type { Call, Printed } from './command.ts'
import { CommandFailed, exitCodes } from './exit.ts'
import type { receiverFlags } from './flag-tables.ts'
import { toCount } from './progress.ts'
import { toName } from './stores.ts'
import { toPrintable, toTable } from './terminal.ts'
import { toTime } from './tokens.ts'

/** Adds a receiver and prints its secret alone on standard output. */
export async function addReceiver(call: Call<typeof receiverFlags, 'new store'>): Promise<Printed> {
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
export function pauseReceiver(call: Call): Promise<Printed> {
  const change = { kind: 'pause', reason: 'paused by the operator' } as const
  return changeReceiver(call, 'paused', (id) => call.store.receivers.change(id, change))
}

/** Continues where a paused receiver stopped. */
export function resumeReceiver(call: Call): Promise<Printed> {
  return changeReceiver(call, 'active', (id) => call.store.receivers.change(id, { kind: 'resume' }))
}

/** Removes a receiver and its pending deliveries. */
export function removeReceiver(call: Call): Promise<Printed> {
  return changeReceiver(call, 'removed', (id) => call.store.receivers.remove(id))
}

async function changeReceiver(call: Call, state: string, change: (id: string) => Promise<string>) {
  const { id } = await findReceiver(call)
  if ((await change(id)) === 'unknown') throw unknownReceiver(id, call.config)
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
  const gets = `gets ${toCount(resent, 'changes')} again ${when}`
  const note = `Receiver ${id} ${resent === 0 ? 'has no failures to send again' : gets}.`
  return { json: { resent }, note }
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

/** The width of the table. Longer lines are cut. */
const columns = 100

/** Lists every receiver: all that is known of it, never its secrets. */
export async function listReceivers({ store }: Call): Promise<Printed> {
  requireJournal(await store.newestPosition())
  const now = Date.now()
  const views: ReceiverView[] = []
  for (const receiver of await store.receivers.list()) {
    views.push(toReceiverView(receiver, await countBehind(store, receiver, now)))
  }
  if (views.length > 0) return { json: views, text: toReceiverTable(views) }
  const note = 'There is no receiver yet. Add one: plant-store webhook add URL'
  return { json: views, note }
}

/** A table, with the long values on lines of their own below each row. */
function toReceiverTable(views: readonly ReceiverView[]): string {
  const titles = ['ID', 'STATE', 'BEHIND', 'LAST SUCCESS', 'LAST FAILURE']
  const rows = views.map((view) => [
    view.id,
    view.state,
    `${toBehind(view.behind.changes)} (${view.behind.seconds} s)`,
    view.lastSuccessAt ?? 'never',
    view.lastFailureAt ?? 'never',
  ])
  const [title = '', ...lines] = toTable([titles, ...rows])
  const blocks = views.map((view, index) => [lines[index] ?? '', ...toDetails(view)])
  return [title, ...blocks.flat()].map(shorten).join('\n')
}

function toDetails({ url, types, position, reason, lastFailure }: ReceiverView): string[] {
  return [
    `  url       ${url}`,
    `  types     ${types.join(', ')}`,
    `  position  ${position}`,
    ...(reason === null ? [] : [`  reason    ${reason}`]),
    ...(lastFailure === null ? [] : [`  failure   ${lastFailure}`]),
  ]
}

function toBehind(changes: number): string {
  return changes < maxCounted ? String(changes) : `${maxCounted}+`
}

function shorten(line: string): string {
  const shown = toPrintable(line)
  return shown.length <= columns ? shown : `${shown.slice(0, columns - 1)}…`
}

/** A receiver as `--json` shows it: never its secrets. */
function toReceiverView(receiver: Receiver, behind: Behind) {
  const { id, url, types, state, reason = null, createdAt, progress } = receiver
  return {
    id,
    url,
    types,
    state,
    reason,
    position: progress.position,
    behind,
    createdAt: toTime(createdAt),
    lastSuccessAt: toTime(progress.lastSuccessAt),
    lastFailureAt: toTime(progress.lastFailureAt),
    lastFailure: progress.lastFailure ?? null,
  }
}

type ReceiverView = ReturnType<typeof toReceiverView>

/** How many changes are not delivered to a receiver yet, and how old the oldest of them is. */
interface Behind {
  readonly changes: number
  readonly seconds: number
}

/** Counting stops here: the journal may hold millions. */
const maxCounted = 100_000
const pageEvents = 1_000

/** Counts the changes that are not delivered to a receiver yet, up to a bound. */
async function countBehind(
  store: Pick<Store, 'readJournal' | 'receivers'>,
  { id, types, progress }: Receiver,
  now: number,
): Promise<Behind> {
  const backlog = (await store.receivers.listBacklogs()).find((one) => one.id === id)
  const wanted = new Set<string>(types)
  const known = new Set(progress.ahead)
  let changes = backlog?.changes ?? 0
  let oldestAt = Math.min(now, backlog?.at ?? now)
  let after: string = progress.position
  while (changes < maxCounted) {
    const page = await store.readJournal(after, pageEvents)
    if (page === 'off') break
    if (page === 'gone') {
      if (after === 'oldest') break
      after = 'oldest'
      continue
    }
    const missing = page.events.filter(
      ({ type, position }) => wanted.has(type) && !known.has(position),
    )
    oldestAt = Math.min(oldestAt, missing[0]?.at ?? now)
    changes += missing.length
    if (page.events.length === 0) break
    after = page.end
  }
  const seconds = changes === 0 ? 0 : Math.max(0, Math.round((now - oldestAt) / 1000))
  return { changes: Math.min(changes, maxCounted), seconds }
}

/** Refuses a store that writes no journal. Returns the position in it. */
function requireJournal(position: Position | 'off'): Position {
  if (position !== 'off') return position
  throw new WrongConfig([
    `Webhooks are off, because JOURNAL_KEEP is off. Set it to a time such as 7d and restart the service.`,
  ])
}
