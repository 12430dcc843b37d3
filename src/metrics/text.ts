import type { Labels, Metric } from './metric.ts'

/** The media types in which metrics can be read, with what each is called in full. */
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
  // In OpenMetrics the suffix of a counter belongs to its samples, not to its name, and help is
  // escaped as labels are.
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
