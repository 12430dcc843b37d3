import type { Metric as RegisteredMetric, RegistryContentType } from 'prom-client'
import Registry from 'prom-client/lib/registry.js'
import type { Metric } from './metric.ts'

/** The media types in which metrics can be read, with what each is called in full. */
export const metricsContentTypes = {
  'text/plain': 'text/plain; version=0.0.4; charset=utf-8',
  'application/openmetrics-text': 'application/openmetrics-text; version=1.0.0; charset=utf-8',
} as const satisfies Record<string, RegistryContentType>

export type MetricsMediaType = keyof typeof metricsContentTypes

/** Writes metrics in the text format of Prometheus, or in OpenMetrics. */
export function writeMetrics(
  metrics: readonly Metric[],
  mediaType: MetricsMediaType,
): Promise<string> {
  const registry = new Registry<RegistryContentType>()
  registry.setContentType(metricsContentTypes[mediaType])
  // The registry asks each metric for its values when it writes them. In OpenMetrics it takes the
  // suffix from the names of counters first, so each metric returns itself.
  for (const metric of metrics) {
    const registered = { ...metric, get: () => registered }
    registry.registerMetric(registered as unknown as RegisteredMetric)
  }
  return registry.metrics()
}
