import type { Histogram } from '../store/measures.ts'

/** A metric as plain data, which one process can send to another. */
export interface Metric {
  readonly name: string
  readonly help: string
  readonly type: 'counter' | 'gauge' | 'histogram'
  /** How the values of several processes are combined. */
  readonly aggregator: 'sum' | 'max' | 'min'
  readonly values: readonly Sample[]
}

/** A value of a metric. Buckets, sums and counts of a histogram have names of their own. */
interface Sample {
  readonly metricName?: string
  readonly labels: Labels
  readonly value: number
}

type Labels = Readonly<Record<string, string | number>>

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

/** Merges the metrics of several processes. */
export function mergeMetrics(processes: readonly (readonly Metric[])[]): Metric[] {
  const byName = Map.groupBy(processes.flat(), ({ name }) => name)
  return [...byName.values()].map((same) => {
    const [first] = same as [Metric]
    return same.length === 1 ? first : { ...first, values: mergeSamples(same, first.aggregator) }
  })
}

/**
 * The metrics of an exited process that still count, because a total must never fall. Totals that
 * are not summed belong to the database server, and the other processes report them too.
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

/** The media types of the metrics, each with its full `Content-Type`. */
export const metricsContentTypes = {
  'text/plain': 'text/plain; version=0.0.4; charset=utf-8',
  'application/openmetrics-text': 'application/openmetrics-text; version=1.0.0; charset=utf-8',
} as const

export type MetricsMediaType = keyof typeof metricsContentTypes

/** Writes metrics in the text format of Prometheus, or in OpenMetrics. */
export function writeMetrics(metrics: readonly Metric[], mediaType: MetricsMediaType): string {
  if (mediaType === 'text/plain') {
    const families = metrics.map((metric) => writeFamily(metric, metric.name, escapeHelp))
    return `${families.join('\n\n')}\n`
  }
  // In OpenMetrics the suffix of a counter belongs to its samples, not to its name, and help text
  // is escaped like labels.
  const families = metrics.map((metric) =>
    writeFamily(metric, metric.name.replace(/_total$/, ''), escapeLabel),
  )
  return `${[...families, '# EOF'].join('\n')}\n`
}

function writeFamily(
  { name, help, type, values }: Metric,
  family: string,
  escapeText: (help: string) => string,
): string {
  const samples = values.map(
    ({ metricName = name, labels, value }) =>
      `${metricName}${writeLabels(labels)} ${writeNumber(value)}`,
  )
  return [`# HELP ${family} ${escapeText(help)}`, `# TYPE ${family} ${type}`, ...samples].join('\n')
}

function writeLabels(labels: Labels): string {
  const pairs = Object.entries(labels).map(
    ([name, value]) => `${name}="${escapeLabel(String(value))}"`,
  )
  return pairs.length === 0 ? '' : `{${pairs.join(',')}}`
}

function writeNumber(value: number): string {
  if (Math.abs(value) === Number.POSITIVE_INFINITY) return value < 0 ? '-Inf' : '+Inf'
  return String(value)
}

function escapeHelp(text: string): string {
  return text.replaceAll('\\', '\\\\').replaceAll('\n', '\\n')
}

function escapeLabel(text: string): string {
  return escapeHelp(text).replaceAll('"', '\\"')
}
