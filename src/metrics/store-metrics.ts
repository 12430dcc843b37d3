import { toCursor } from '../journal/position.ts'
import type { JournalMeasures } from '../journal/trim.ts'
import type { Backlog, Receiver } from '../store/receivers.ts'
import type { Position, Store, StoreMeasures } from '../store/store.ts'
import { type Metric, toCounter, toGauge, toHistogram } from './metric.ts'

/** The measures of a store as metrics. The names are the same for every engine. */
export function toStoreMetrics(measures: StoreMeasures): Metric[] {
  const { isUp, queuedWrites, batchItems, batchSeconds } = measures
  const { commitSeconds, fsyncSeconds } = measures
  return [
    toGauge('plant_store_store_up', 'Whether the store can be reached.', isUp ? 1 : 0, 'min'),
    toGauge('plant_store_write_queue_changes', 'Writes that wait for a batch.', queuedWrites),
    toHistogram('plant_store_batch_changes', 'Writes that share a transaction.', [
      [{}, batchItems],
    ]),
    toHistogram(
      'plant_store_batch_duration_seconds',
      'Time that a batch of writes took: its lock, its statements and its commit.',
      [[{}, batchSeconds]],
    ),
    toHistogram(
      'plant_store_commit_duration_seconds',
      'Time that a transaction took: its statements and its commit.',
      [[{}, commitSeconds]],
    ),
    toHistogram(
      'plant_store_fsync_duration_seconds',
      'Time that writing the log and its fsync took.',
      fsyncSeconds === undefined ? [] : [[{}, fsyncSeconds]],
      // A database server reports the same totals to every process.
      'max',
    ),
    toGauge(
      'plant_store_store_size_bytes',
      'Size of the store on disk.',
      measures.sizes.map(([part, bytes]) => [{ part }, bytes]),
      'max',
    ),
  ]
}

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

type Followed = Pick<Store, 'readJournal' | 'newestPosition' | 'receivers'>

/**
 * The length of the journal, and how far each webhook receiver is behind. Both are in commits,
 * which are numbered: counting changes would read the whole journal.
 */
export async function collectJournal(store: Followed, now: number): Promise<Metric[]> {
  try {
    const [oldest, end, receivers, backlogs] = await Promise.all([
      store.readJournal('oldest', 1),
      store.newestPosition(),
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
    // The store is unreachable, which `plant_store_store_up` reports.
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

/** Each receiver may have a label: there are at most 100, and only the operator adds them. */
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
    // The commit of the oldest delivery counts as behind; the commit of a position does not.
    return waiting === undefined ? toDistance(position, end) : toDistance(waiting, end) + 1
  }
  return [
    toGauge(
      'plant_store_webhook_behind_commits',
      'Commits that are not delivered to a receiver yet.',
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

/** The number of commits between two positions. */
function toDistance(from: Position, to: Position): number {
  return Math.max(0, (toCursor(to)?.seq ?? 0) - (toCursor(from)?.seq ?? 0))
}
