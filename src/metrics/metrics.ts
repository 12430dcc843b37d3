import type { Failure } from '../contract/errors.ts'
import type { JournalMeasures } from '../journal/bound.ts'
import type { Store } from '../store/store.ts'
import {
  type Metric,
  type MetricsMediaType,
  metricsContentTypes,
  toGauge,
  writeMetrics,
} from './metric.ts'
import { watchProcess } from './process.ts'
import { buildRequestMetrics, type RequestMetrics } from './requests.ts'
import { collectJournal, toBoundMetrics, toStoreMetrics } from './store-metrics.ts'

/** Counts what the service does, and writes the metrics of a scrape. */
export interface Metrics extends Pick<RequestMetrics, 'countersOf'> {
  /** Counts a failure that refuses a request because of a bound. */
  countRefusal(failure: Failure): void
  /** Counts a connection that was refused because too many are open. */
  countDrop(): void
  watchConnections(count: () => number): void
  /** Writes the metrics of all processes in one of the media types of the operation. */
  write(mediaType: string): Promise<{ contentType: string; text: string }>
  close(): void
}

export interface MetricsParts {
  readonly version: string
  readonly engine: string
  readonly store: Store
  readonly journal: JournalMeasures
  /** How many tokens were used within the last minutes. */
  readonly tokensInUse: () => number
  /** Wraps the collector of this process into one that collects from all processes. */
  readonly joinProcesses?: JoinProcesses
}

export type Collect = () => Promise<Metric[]>
export type JoinProcesses = (collectOwn: Collect) => Collect

export function openMetrics(parts: MetricsParts): Metrics {
  const { version, engine, store, tokensInUse, joinProcesses = (collect) => collect } = parts
  const requests = buildRequestMetrics()
  const watch = watchProcess()
  const collectAll = joinProcesses(collect)
  let countConnections = () => 0
  let collecting: Promise<Metric[]> | undefined

  async function collect(): Promise<Metric[]> {
    const build = [{ version, engine, node: process.versions.node }, 1] as const
    return [
      toGauge('plant_store_build_info', 'The release and what it runs on.', [build], 'max'),
      toGauge('plant_store_processes', 'Processes that serve the port.', 1),
      ...requests.collect(),
      toGauge('plant_store_http_connections', 'Open connections.', countConnections()),
      toGauge(
        'plant_store_tokens_in_use',
        'Tokens used within five minutes; with workers, the most that one of them has seen.',
        tokensInUse(),
        'max',
      ),
      ...toStoreMetrics(await store.measure()),
      ...toBoundMetrics(parts.journal),
      ...(await collectJournal(store, Date.now())),
      ...watch.collect(),
    ]
  }

  return {
    countersOf: requests.countersOf,
    countRefusal({ number, reason = number === 50300 ? 'other' : undefined }) {
      if (reason !== undefined) requests.countRefusal(reason)
    },
    countDrop: () => requests.countRefusal('connections'),
    watchConnections(count) {
      countConnections = count
    },
    async write(mediaType) {
      // Concurrent scrapes share one collection.
      collecting ??= collectAll().finally(() => {
        collecting = undefined
      })
      const known = mediaType as MetricsMediaType
      const text = writeMetrics(await collecting, known)
      return { contentType: metricsContentTypes[known], text }
    },
    close: watch.close,
  }
}
