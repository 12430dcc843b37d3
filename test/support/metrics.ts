import { type Metrics, openMetrics } from '../../src/metrics/metrics.ts'
import type { Store } from '../../src/store/store.ts'
import { releaseAfterTest } from './release.ts'

/** The metrics of a service that a test assembles itself. They are closed with the test. */
export function openTestMetrics(store: Store): Metrics {
  const metrics = openMetrics({
    version: '0',
    engine: 'sqlite',
    store,
    journal: { bytes: 0, droppedChanges: 0 },
    tokensInUse: () => 0,
  })
  releaseAfterTest(metrics.close)
  return metrics
}

/** The samples of metrics in the text format of Prometheus: a value for each name with labels. */
export function parseMetrics(text: string): Map<string, number> {
  const lines = text.split('\n').filter((line) => line !== '' && !line.startsWith('#'))
  return new Map(
    lines.map((line) => {
      const end = line.lastIndexOf(' ')
      return [line.slice(0, end), Number(line.slice(end + 1))]
    }),
  )
}
