import type { PlacedSeconds, StoreMeasures } from '../store/store.ts'
import { type Metric, toGauge, toHistogram } from './metric.ts'

/** The measures of a store as metrics. The names are the same for every engine. */
export function toStoreMetrics(measures: StoreMeasures): Metric[] {
  const { isUp, queuedWrites, queuedBytes, batchItems, batchSeconds } = measures
  const { commitSeconds, fsyncSeconds } = measures
  return [
    toGauge('plant_store_store_up', 'Whether the store can be reached.', isUp ? 1 : 0, 'min'),
    toGauge('plant_store_write_queue_changes', 'Writes that wait for a batch.', queuedWrites),
    toGauge('plant_store_write_queue_bytes', 'Memory that waiting writes hold.', queuedBytes),
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
      'Time that a transaction took: its statements and its commit, by the place where it ran.',
      toLabelled(commitSeconds),
    ),
    toHistogram(
      'plant_store_fsync_duration_seconds',
      'Time that writing the log and its fsync took, by the place where it ran.',
      toLabelled(fsyncSeconds),
      // A server reports its own totals to every process.
      fsyncSeconds.some(([place]) => place === 'server') ? 'max' : 'sum',
    ),
    toGauge(
      'plant_store_store_size_bytes',
      'Size of the store on disk.',
      measures.sizes.map(([part, bytes]) => [{ part }, bytes]),
      'max',
    ),
  ]
}

function toLabelled(placed: PlacedSeconds) {
  return placed.map(([place, seconds]) => [{ place }, seconds] as const)
}
