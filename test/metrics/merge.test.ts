import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import {
  mergeMetrics,
  toCounter,
  toGauge,
  toHistogram,
  toTotals,
  writeMetrics,
} from '../../src/metrics/metric.ts'
import { buildHistogram, observe } from '../../src/store/measures.ts'

function toProcess(value: number) {
  const histogram = buildHistogram([1, 10])
  observe(histogram, value)
  return [
    toCounter('a_total', 'Counts.', [
      [{ kind: 'x' }, value],
      [{ kind: `only ${value}` }, 1],
    ]),
    toGauge('b', 'Sums.', value),
    toGauge('c', 'Takes the most.', value, 'max'),
    toGauge('d', 'Takes the least.', value, 'min'),
    toHistogram('e_seconds', 'Spreads.', [[{}, histogram]]),
    toHistogram('f_seconds', 'Comes from a server.', [[{}, histogram]], 'max'),
  ]
}

describe('the metrics of several processes', () => {
  it('are those of one service', async () => {
    const text = writeMetrics(mergeMetrics([toProcess(1), toProcess(20)]), 'text/plain')
    const lines = text.split('\n').filter((line) => line !== '' && !line.startsWith('#'))
    assert.deepEqual(lines, [
      'a_total{kind="x"} 21',
      'a_total{kind="only 1"} 1',
      'a_total{kind="only 20"} 1',
      'b 21',
      'c 20',
      'd 1',
      'e_seconds_bucket{le="1"} 1',
      'e_seconds_bucket{le="10"} 1',
      'e_seconds_bucket{le="+Inf"} 2',
      'e_seconds_sum 21',
      'e_seconds_count 2',
      'f_seconds_bucket{le="1"} 1',
      'f_seconds_bucket{le="10"} 1',
      'f_seconds_bucket{le="+Inf"} 1',
      'f_seconds_sum 20',
      'f_seconds_count 1',
    ])
  })

  it('keep the totals of a process that has ended, and nothing else of it', () => {
    const names = toTotals(toProcess(1)).map(({ name }) => name)
    assert.deepEqual(names, ['a_total', 'e_seconds'])
  })

  it('end with a mark in OpenMetrics, where counters have the suffix in their samples only', async () => {
    const text = writeMetrics(toProcess(1).slice(0, 1), 'application/openmetrics-text')
    assert.equal(
      text,
      '# HELP a Counts.\n# TYPE a counter\na_total{kind="x"} 1\na_total{kind="only 1"} 1\n# EOF\n',
    )
  })
})
