import { randomUUID } from 'node:crypto'
import { WrongConfig } from '../config.ts'
import { isLoopback } from '../contract/setting-values.ts'
import { testEvent } from '../contract/webhooks.ts'
import { findEvent } from '../journal/reader.ts'
import { type Delivery, maxReceivers, type Receiver } from '../store/receivers.ts'
import { type Position, type Store, toPlantId } from '../store/store.ts'
import { deliver, findUrlMistake, newReceiver, rotate } from '../webhooks/receiver.ts'
import { defaultSettings } from '../webhooks/sender.ts'
import { openTransport } from '../webhooks/transport.ts'
import type { Call, Printed, Run } from './commands.ts'
import { toName } from './stores.ts'
import { CommandFailed, exitCodes, toCount, toPrintable, toTable, toTime } from './terminal.ts'

/** Adds a receiver and prints its secret alone on standard output. */
export async function addReceiver(call: Call<'webhook add'>): Promise<Printed> {
  const { args, store, config } = call
  const { types = ['plant.created'], from } = call.flags
  const [url = ''] = args
  const mistake = findUrlMistake(url)
  // The URL itself is not repeated: it may hold a secret.
  if (mistake !== undefined) throw new WrongConfig([`The URL of the receiver ${mistake}.`])
  const end = requireJournal(await store.journalEnd())
  const position = await toBegin(store, from, end)
  const receiver = newReceiver(url, types, position)
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

/** A command on one receiver, which another command may remove meanwhile. */
function onReceiver(
  act: (receiver: Receiver, call: Call<'webhook test'>) => Promise<Printed | 'unknown'>,
): Run<'webhook test'> {
  return async (call) => {
    const { args, store, config } = call
    const [id = ''] = args
    requireJournal(await store.newestPosition())
    const receiver = (await store.receivers.list()).find((one) => one.id === id)
    const printed = receiver === undefined ? 'unknown' : await act(receiver, call)
    if (printed !== 'unknown') return printed
    throw new WrongConfig([
      `No receiver in ${toName(config.storeLocation)} has the id ${id}. See: plant-store webhook list`,
    ])
  }
}

function changeReceiver(state: string, change: (store: Store, id: string) => Promise<string>) {
  return onReceiver(async ({ id }, { store }) => {
    if ((await change(store, id)) === 'unknown') return 'unknown'
    return { json: { id, state }, note: `Receiver ${id} is ${state}.` }
  })
}

/** Stops sending until the receiver is resumed. */
export const pauseReceiver = changeReceiver('paused', ({ receivers }, id) =>
  receivers.change(id, { kind: 'pause', reason: 'paused by the operator' }),
)

/** Continues where a paused receiver stopped. */
export const resumeReceiver = changeReceiver('active', ({ receivers }, id) =>
  receivers.change(id, { kind: 'resume' }),
)

/** Removes a receiver and its pending deliveries. */
export const removeReceiver = changeReceiver('removed', ({ receivers }, id) => receivers.remove(id))

/** Makes a new secret and prints it alone on standard output. The old one signs for a day more. */
export const rotateSecret = onReceiver(async ({ id, secrets }, { store }) => {
  const set = (changed: typeof secrets) =>
    store.receivers.change(id, { kind: 'set secrets', secrets: changed })
  const rotated = rotate(secrets)
  if ((await set(rotated)) === 'unknown') return 'unknown'
  const { current: secret, previousUntil } = rotated
  const until = toTime(previousUntil)
  return {
    text: secret,
    json: { id, secret, previousUntil },
    undo: () => set(secrets),
    remarks: [`Receiver ${id} gets a second signature, with the old secret, until ${until}.`],
  }
})

/** Sends a signed sample to a receiver, and prints what came back. */
export const testReceiver = onReceiver(async ({ id, url, secrets }) => {
  const transport = openTransport({ url, timeoutMs: defaultSettings.timeoutMs })
  const startedAt = performance.now()
  const body = '{"id":1,"name":"Monstera deliciosa","tag":"indoor"}'
  const message = { id: `test-${randomUUID()}`, event: testEvent, body }
  const { status = null, error = null } = await deliver(transport, secrets, message, () => true)
  transport.close()
  const ms = Math.round(performance.now() - startedAt)
  const text = `${status ?? 'no status'} after ${ms} ms`
  const printed = { text, json: { id, status, ms, error } }
  if (error === null) return printed
  const refusal = `Receiver ${id} did not take it: ${error}.`
  return { ...printed, failure: new CommandFailed(exitCodes.inputOutput, refusal) }
})

/** Lists the changes that a receiver did not take, and why. */
export const listFailures = onReceiver(async ({ id }, { store }) => {
  const failures = await store.receivers.listDeliveries(id, 'failed')
  const json = failures.map(({ position, type, at, attempts, lastStatus, lastError }) => {
    return { position, type, at, attempts, lastStatus, lastError }
  })
  const table = toTable(json, {
    POSITION: ({ position }) => position,
    TYPE: ({ type }) => type,
    AT: ({ at }) => toTime(at),
    ATTEMPTS: ({ attempts }) => String(attempts),
    'LAST ERROR': ({ lastError }) => lastError ?? '-',
  })
  return { json, text: table.join('\n'), note: `Receiver ${id} has no failures.` }
})

/** Sends every failure again, or one change of the journal. */
export const resend = onReceiver(async ({ id, state }, { store, args }) => {
  const [, position] = args
  let resent = await store.receivers.retryFailures(id, Date.now(), position)
  if (resent === 0 && position !== undefined) {
    const delivery = await toDelivery(position, store)
    if ((await store.receivers.addDelivery(id, delivery)) === 'unknown') return 'unknown'
    resent = 1
  }
  const when = state === 'paused' ? 'once it is resumed' : 'now'
  const gets = `gets ${toCount(resent, 'changes')} again ${when}`
  const note = `Receiver ${id} ${resent === 0 ? 'has no failures to send again' : gets}.`
  return { json: { resent }, note }
})

/** A delivery of a change that has not failed, or is no longer kept as a failure. */
async function toDelivery(position: string, store: Store): Promise<Delivery> {
  const event = await findEvent(store, position)
  if (event === undefined) {
    throw new WrongConfig([
      `The change at ${position} is no longer kept, or is none of this store. Nothing was sent.`,
    ])
  }
  const { type, at, plantJson: body } = event
  const first = { attempts: 0, dueAt: Date.now(), lastStatus: undefined, lastError: undefined }
  return { position, type, at, plantId: toPlantId(event), body, ...first }
}

/** Lists every receiver: all that is known of it, never its secrets. */
export async function listReceivers({ store }: Call<'webhook list'>): Promise<Printed> {
  requireJournal(await store.newestPosition())
  const now = Date.now()
  const views: ReceiverView[] = []
  for (const receiver of await store.receivers.list()) {
    views.push(toReceiverView(receiver, await countBehind(store, receiver, now)))
  }
  const table = toTable(views, {
    ID: ({ id }) => id,
    STATE: ({ state }) => state,
    BEHIND: ({ behind }) => `${behind.changes} (${behind.seconds} s)`,
    'LAST SUCCESS': ({ lastSuccessAt }) => toTime(lastSuccessAt, 'never'),
    'LAST FAILURE': ({ lastFailureAt }) => toTime(lastFailureAt, 'never'),
  })
  const lines = table.flatMap((line, row) => [line, ...toDetails(views[row - 1])])
  const note = 'There is no receiver yet. Add one: plant-store webhook add URL'
  return { json: views, text: lines.map(toPrintable).join('\n'), note }
}

/** The long values of a receiver, on lines of their own below its row. */
function toDetails(view: ReceiverView | undefined): string[] {
  if (view === undefined) return []
  const { url, types, position, reason, lastFailure: failure } = view
  return Object.entries({ url, types: types.join(', '), position, reason, failure })
    .filter(([, value]) => value !== undefined)
    .map(([name, value]) => `  ${name.padEnd(8)}  ${value}`)
}

/** A receiver as it is shown: never its secrets. */
function toReceiverView(receiver: Receiver, behind: Behind) {
  const { id, url, types, state, reason, createdAt, progress } = receiver
  const { position, lastSuccessAt, lastFailureAt, lastFailure } = progress
  const times = { createdAt, lastSuccessAt, lastFailureAt, lastFailure }
  return { id, url, types, state, reason, position, behind, ...times }
}

type ReceiverView = ReturnType<typeof toReceiverView>
type Behind = Awaited<ReturnType<typeof countBehind>>

/** Counting stops here: the journal may hold millions. */
const maxCounted = 100_000
const pageEvents = 1_000

/** How many changes are not delivered to a receiver yet, and how old the oldest of them is. */
async function countBehind(store: Store, { id, types, progress }: Receiver, now: number) {
  const backlog = (await store.receivers.listBacklogs()).find((one) => one.id === id)
  let { changes, at: oldestAt } = backlog ?? { changes: 0, at: now }
  let after = progress.position
  while (changes < maxCounted) {
    const page = await store.readJournal(after, pageEvents)
    if (page === 'gone' && after !== 'oldest') {
      after = 'oldest'
      continue
    }
    if (typeof page === 'string' || page.events.length === 0) break
    const missing = page.events.filter(
      ({ type, position }) => types.includes(type) && !progress.ahead.includes(position),
    )
    oldestAt = Math.min(oldestAt, missing[0]?.at ?? now)
    changes += missing.length
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
