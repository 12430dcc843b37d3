import {
  type ErrorNumber,
  type RefusalReason,
  refusalReasons,
  toStatus,
} from '../contract/errors.ts'
import { failuresOf, protocolFailures } from '../contract/operation.ts'
import { healthChecks, operations, webPaths } from '../contract/operations.ts'
import { buildHistogram, bytesBounds, secondsBounds } from '../store/measures.ts'
import { type Metric, toCounter, toGauge, toHistogram } from './metric.ts'

/** The counters of one operation or page. Answers count by their status or error number. */
export type Counters = ReturnType<typeof buildCounters>

/** Counts requests by operation, and refusals by reason. */
export function buildRequestMetrics() {
  const byName = new Map<string, Counters>()
  const refusals = new Map<RefusalReason, number>()
  const unknown = addCounters('none', [40000, 40400, 40500, 50300])
  for (const [name, operation] of Object.entries({ ...operations, ...healthChecks })) {
    addCounters(name, [...Object.keys(operation.successes).map(Number), ...failuresOf(operation)])
  }
  for (const name of Object.keys(webPaths)) addCounters(name, [200, ...protocolFailures])

  function addCounters(operation: string, outcomes: readonly number[]): Counters {
    const counters = buildCounters(operation, outcomes)
    byName.set(operation, counters)
    return counters
  }

  return {
    /** The counters of an operation or page; without a name, of everything else. */
    countersOf: (name = '') => byName.get(name) ?? unknown,
    countRefusal(reason: RefusalReason): void {
      refusals.set(reason, (refusals.get(reason) ?? 0) + 1)
    },
    collect(): Metric[] {
      const all = [...byName.values()]
      const used = all.filter(({ answered }) => answered > 0)
      return [
        toCounter(
          'plant_store_http_requests_total',
          'Answers by operation, status and error number.',
          all.flatMap(({ operation, outcomes }) =>
            [...outcomes].map(([outcome, { count }]) => [toLabels(operation, outcome), count]),
          ),
        ),
        toGauge(
          'plant_store_http_requests_in_flight',
          'Requests that wait for answers, and streams. Those of listEvents are the followers.',
          all.map(({ operation, begun, answered }) => [{ operation }, begun - answered]),
        ),
        toHistogram(
          'plant_store_http_request_duration_seconds',
          'Time from the headers of a request to its answer, or to the end of a streamed one.',
          used.map(({ operation, seconds }) => [{ operation }, seconds]),
        ),
        ...(['request', 'response'] as const).map((kind) =>
          toHistogram(
            `plant_store_http_${kind}_size_bytes`,
            `Sizes of the bodies of ${kind}s${kind === 'request' ? ' that declare one (Content-Length)' : ''}.`,
            used.map(({ operation, bytes }) => [{ operation }, bytes[kind]]),
          ),
        ),
        toCounter(
          'plant_store_refusals_total',
          'Requests and connections that were refused to protect the service, by reason.',
          refusalReasons.map((reason) => [{ reason }, refusals.get(reason) ?? 0]),
        ),
      ]
    },
  }
}

function buildCounters(operation: string, outcomes: readonly number[]) {
  // Successes and server errors start at 0, so that Prometheus sees the first one as an increase.
  const expected = outcomes.filter((outcome) => outcome < 400 || outcome >= 50000)
  return {
    operation,
    /** By status or error number: all of them are the contract's, so there are only a few. */
    outcomes: new Map(expected.map((outcome) => [outcome, { count: 0 }])),
    seconds: buildHistogram(secondsBounds),
    bytes: { request: buildHistogram(bytesBounds), response: buildHistogram(bytesBounds) },
    begun: 0,
    answered: 0,
  }
}

function toLabels(operation: string, outcome: number) {
  const isError = outcome >= 40000
  const status = isError ? toStatus(outcome as ErrorNumber) : outcome
  return { operation, status, error: isError ? outcome : 'none' }
}
