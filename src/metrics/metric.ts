import type { Histogram } from '../store/measures.ts'

/** A metric as plain data, which one process can send to another. */
export interface Metric {
  readonly name: string
  readonly help: string
  readonly type: 'counter' | 'gauge' | 'histogram'
  /** How the values of several processes become one. */
  readonly aggregator: 'sum' | 'max' | 'min'
  readonly values: readonly Sample[]
}

/** A value of a metric. Buckets, sums and counts of a histogram have names of their own. */
export interface Sample {
  readonly metricName?: string
  readonly labels: Labels
  readonly value: number
}

export type Labels = Readonly<Record<string, string | number>>

/** A value, or one for each combination of labels. */
type Values = number | readonly (readonly [Labels, number])[]

export function toCounter(name: string, help: string, values: Values): Metric {
  return { name, help, type: 'counter', aggregator: 'sum', values: toSamples(values) }
}

export function toGauge(
  name: string,
  help: string,
  values: Values,
  aggregator: Metric['aggregator'] = 'sum',
): Metric {
  return { name, help, type: 'gauge', aggregator, values: toSamples(values) }
}

export function toHistogram(
  name: string,
  help: string,
  histograms: readonly (readonly [Labels, Histogram])[],
  aggregator: Metric['aggregator'] = 'sum',
): Metric {
  const values = histograms.flatMap(([labels, histogram]) => toBuckets(name, labels, histogram))
  return { name, help, type: 'histogram', aggregator, values }
}

function toSamples(values: Values): Sample[] {
  if (typeof values === 'number') return [{ labels: {}, value: values }]
  return values.map(([labels, value]) => ({ labels, value }))
}

function toBuckets(name: string, labels: Labels, { bounds, counts, sum }: Histogram): Sample[] {
  let count = 0
  const buckets = counts.map((more, index) => {
    count += more
    const le = bounds[index] ?? '+Inf'
    return { metricName: `${name}_bucket`, labels: { ...labels, le }, value: count }
  })
  return [
    ...buckets,
    { metricName: `${name}_sum`, labels, value: sum },
    { metricName: `${name}_count`, labels, value: count },
  ]
}
