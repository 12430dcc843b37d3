import type { JournalMeasures } from '../journal/bound.ts'
import { toCursor } from '../journal/position.ts'
import type { Backlog, Receiver } from '../store/receivers.ts'
import type { Position, Store } from '../store/store.ts'
import { type Metric, toCounter, toGauge } from './metric.ts'

/** How large the journal is, and what its bound has cost. */
export function toBoundMetrics({ bytes, droppedChanges }: JournalMeasures): Metric[] {
  return [
    toGauge('plant_store_journal_size_bytes', 'Size of the journal.', bytes, 'max'),
    toCounter(
      'plant_store_journal_dropped_changes_total',
      'Changes that were dropped before their time because the journal had reached JOURNAL_MAX.',
      droppedChanges,
    ),
  ]
}

type Followed = Pick<Store, 'readJournal' | 'journalEnd' | 'receivers'>

/**
 * How long the journal is, and how far the receivers of webhooks are behind. Both are counted in
 * commits, of which the journal knows the numbers: counting changes would read all of it.
 */
export async function collectJournal(store: Followed, now: number): Promise<Metric[]> {
  try {
    const [oldest, end, receivers, backlogs] = await Promise.all([
      store.readJournal('oldest', 1),
      store.journalEnd(),
      store.receivers.list(),
      store.receivers.listBacklogs(),
    ])
    if (typeof oldest === 'string') return toReceivers(receivers)
    const [first] = oldest.events
    const seconds = first === undefined ? 0 : (now - first.at) / 1000
    return [
      toGauge(
        'plant_store_journal_commits',
        'Commits in the journal.',
        toDistance(oldest.begin, end),
        'max',
      ),
      toGauge(
        'plant_store_journal_age_seconds',
        'Age of the oldest change in the journal.',
        seconds,
        'max',
      ),
      ...toReceivers(receivers),
      ...toProgress(receivers, backlogs, end, now),
    ]
  } catch {
    // The store is away, which has a metric of its own.
    return []
  }
}

function toReceivers(receivers: readonly Receiver[]): Metric[] {
  const count = (state: Receiver['state']) =>
    receivers.filter((receiver) => receiver.state === state).length
  return [
    toGauge(
      'plant_store_webhook_receivers',
      'Receivers of webhooks.',
      (['active', 'paused'] as const).map((state) => [{ state }, count(state)]),
      'max',
    ),
  ]
}

/** The operator names the receivers, a hundred at most, so that each may have a label. */
function toProgress(
  receivers: readonly Receiver[],
  backlogs: readonly Backlog[],
  end: Position,
  now: number,
): Metric[] {
  const active = receivers.filter(({ state }) => state === 'active')
  const oldest = new Map(backlogs.map(({ id, position }) => [id, position]))
  const toBehind = ({ id, progress: { position } }: Receiver) => {
    const waiting = oldest.get(id)
    // The commit of the oldest delivery counts, that of a position does not.
    return waiting === undefined ? toDistance(position, end) : toDistance(waiting, end) + 1
  }
  return [
    toGauge(
      'plant_store_webhook_behind_commits',
      'Commits that a receiver has yet to get.',
      active.map((receiver) => [{ receiver: receiver.id }, toBehind(receiver)]),
      'max',
    ),
    toGauge(
      'plant_store_webhook_failing_seconds',
      'For how long every attempt to reach a receiver has failed.',
      active.map(({ id, progress: { failingSince = now } }) => [
        { receiver: id },
        (now - failingSince) / 1000,
      ]),
      'max',
    ),
  ]
}

/** How many commits are between two positions. */
function toDistance(from: Position, to: Position): number {
  return Math.max(0, (toCursor(to)?.seq ?? 0) - (toCursor(from)?.seq ?? 0))
}
