import type { Failure } from '../contract/errors.ts'
import type { JournalMeasures } from '../journal/trim.ts'
import type { Store } from '../store/store.ts'
import {
  type Metric,
  type MetricsMediaType,
  metricsContentTypes,
  toGauge,
  writeMetrics,
} from './metric.ts'
import { watchProcess } from './process.ts'
import { buildRequestMetrics } from './requests.ts'
import { collectJournal, toBoundMetrics, toStoreMetrics } from './store-metrics.ts'

export type Metrics = ReturnType<typeof openMetrics>

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

/** Counts what the service does, and writes the metrics of a scrape. */
export function openMetrics(parts: MetricsParts) {
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
    /** Counts a failure that refuses a request because of a bound. */
    countRefusal({ number, reason = number === 50300 ? 'other' : undefined }: Failure): void {
      if (reason !== undefined) requests.countRefusal(reason)
    },
    /** Counts a connection that was refused because too many are open. */
    countDrop: () => requests.countRefusal('connections'),
    watchConnections(count: () => number): void {
      countConnections = count
    },
    /** Writes the metrics of all processes in one of the media types of the operation. */
    async write(mediaType: string) {
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
