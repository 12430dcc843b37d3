import { WrongConfig } from '../config.ts'
import type { Receiver } from '../store/receivers.ts'
import type { Position, Store } from '../store/store.ts'
import type { Call, Printed } from './command.ts'
import { toPrintable, toTable } from './terminal.ts'
import { toTime } from './tokens.ts'

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

/** Refuses a store that writes no journal. Returns the position in it. */
export function requireJournal(position: Position | 'off'): Position {
  if (position !== 'off') return position
  throw new WrongConfig([
    `Webhooks are off, because JOURNAL_KEEP is off. Set it to a time such as 7d and restart the service.`,
  ])
}
