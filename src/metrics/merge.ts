import type { Metric, Sample } from './metric.ts'

/** Joins the metrics of several processes into those of one service. */
export function mergeMetrics(processes: readonly (readonly Metric[])[]): Metric[] {
  const byName = Map.groupBy(processes.flat(), ({ name }) => name)
  return [...byName.values()].map((same) => {
    const [first] = same as [Metric]
    return same.length === 1 ? first : { ...first, values: mergeSamples(same, first.aggregator) }
  })
}

/**
 * The part of the metrics of an ended process that still counts: a total must never fall. Totals
 * that are not summed are those of a server, which the other processes report as well.
 */
export function toTotals(metrics: readonly Metric[]): Metric[] {
  return metrics.filter(({ type, aggregator }) => type !== 'gauge' && aggregator === 'sum')
}

function mergeSamples(metrics: readonly Metric[], aggregator: Metric['aggregator']): Sample[] {
  const merged = new Map<string, Sample>()
  for (const { values } of metrics) {
    for (const sample of values) {
      const key = `${sample.metricName}${JSON.stringify(sample.labels)}`
      const known = merged.get(key)
      const value = known === undefined ? sample.value : join(known.value, sample.value)
      merged.set(key, { ...sample, value })
    }
  }
  return [...merged.values()]

  function join(one: number, other: number): number {
    if (aggregator === 'sum') return one + other
    return aggregator === 'max' ? Math.max(one, other) : Math.min(one, other)
  }
}
