import { type StoreConfig, WrongConfig } from '../config.ts'
import type { Receiver } from '../store/receivers.ts'
import type { Position, Store } from '../store/store.ts'
import type { JsonFlags } from './flags.ts'
import { toName, withExistingStore } from './stores.ts'
import { type Context, toPrintable, toTable } from './terminal.ts'
import { toTime } from './tokens.ts'

/** The width of the table. Longer lines are cut. */
const columns = 100

/** Lists every receiver: all that is known of it, never its secrets. */
export async function listReceivers(
  flags: JsonFlags,
  { config, terminal }: Context,
): Promise<void> {
  await withReceivers(config, async (store) => {
    const now = Date.now()
    const views: ReceiverView[] = []
    for (const receiver of await store.receivers.list()) {
      views.push(toReceiverView(receiver, await countBehind(store, receiver, now)))
    }
    if (flags.json) await terminal.print(`${JSON.stringify(views, null, 2)}\n`)
    else if (views.length === 0)
      terminal.tell('There is no receiver yet. Add one: plant-store webhook add URL')
    else await terminal.print(toReceiverTable(views))
  })
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
  return `${[title, ...blocks.flat()].map(shorten).join('\n')}\n`
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
export function toReceiverView(receiver: Receiver, behind: Behind) {
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
export async function countBehind(
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

/** Opens a store that exists and writes a journal, and uses it. */
function withReceivers<Value>(
  config: StoreConfig,
  use: (store: Store) => Promise<Value>,
): Promise<Value> {
  return withExistingStore(config, async (store) => {
    requireJournal(await store.newestPosition())
    return use(store)
  })
}

/** Opens the store, finds a receiver in it, and uses both. */
export async function withReceiver<Value>(
  id: string,
  config: StoreConfig,
  use: (receiver: Receiver, store: Store) => Promise<Value>,
): Promise<Value> {
  return withReceivers(config, async (store) => {
    const receiver = (await store.receivers.list()).find((one) => one.id === id)
    if (receiver === undefined) throw unknownReceiver(id, config)
    return use(receiver, store)
  })
}

export function unknownReceiver(id: string, { storeLocation }: StoreConfig): WrongConfig {
  return new WrongConfig([
    `No receiver in ${toName(storeLocation)} has the id ${id}. See: plant-store webhook list`,
  ])
}

/** Refuses a store that writes no journal. Returns the position in it. */
export function requireJournal(position: Position | 'off'): Position {
  if (position !== 'off') return position
  throw new WrongConfig([
    `Webhooks are off, because JOURNAL_KEEP is off. Set it to a time such as 7d and restart the service.`,
  ])
}
