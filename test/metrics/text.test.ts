import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import {
  mergeMetrics,
  metricsContentTypes,
  toCounter,
  toGauge,
  toHistogram,
  toTotals,
  writeMetrics,
} from '../../src/metrics/metric.ts'
import { buildHistogram, observe } from '../../src/store/measures.ts'
import { startService } from '../support/service.ts'

const awkward = 'a "quote", a \\ and a \\n,\nthen a new line {le="1"} 5'
const histogram = buildHistogram([0.0005, 1, 16_777_216])
for (const value of [0.0001, 0.5, 2, 1e9]) observe(histogram, value)

const metrics = [
  toCounter('a_total', awkward, [
    [{ kind: awkward, status: 200 }, 1],
    [{ kind: '', status: 0 }, 1e21],
  ]),
  toCounter('b_total', 'Has no samples.', []),
  toGauge('c', 'Unusual values.', [
    [{ kind: 'small' }, 5e-324],
    [{ kind: 'negative' }, -1.5],
    [{ kind: 'infinite' }, Number.POSITIVE_INFINITY],
    [{ kind: 'negative infinite' }, Number.NEGATIVE_INFINITY],
    [{ kind: 'none' }, Number.NaN],
  ]),
  toGauge('d', 'No labels.', 0),
  toHistogram('e_seconds', 'Spreads.', [
    [{ place: 'x' }, histogram],
    [{ place: 'y' }, buildHistogram([1])],
  ]),
]

const prometheus = String.raw`# HELP a_total a "quote", a \\ and a \\n,\nthen a new line {le="1"} 5
# TYPE a_total counter
a_total{kind="a \"quote\", a \\ and a \\n,\nthen a new line {le=\"1\"} 5",status="200"} 1
a_total{kind="",status="0"} 1e+21

# HELP b_total Has no samples.
# TYPE b_total counter

# HELP c Unusual values.
# TYPE c gauge
c{kind="small"} 5e-324
c{kind="negative"} -1.5
c{kind="infinite"} +Inf
c{kind="negative infinite"} -Inf
c{kind="none"} NaN

# HELP d No labels.
# TYPE d gauge
d 0

# HELP e_seconds Spreads.
# TYPE e_seconds histogram
e_seconds_bucket{place="x",le="0.0005"} 1
e_seconds_bucket{place="x",le="1"} 2
e_seconds_bucket{place="x",le="16777216"} 3
e_seconds_bucket{place="x",le="+Inf"} 4
e_seconds_sum{place="x"} 1000000002.5001
e_seconds_count{place="x"} 4
e_seconds_bucket{place="y",le="1"} 0
e_seconds_bucket{place="y",le="+Inf"} 0
e_seconds_sum{place="y"} 0
e_seconds_count{place="y"} 0
`

/** It has no empty lines, other names of totals, quotes that are escaped in help, and an end. */
const openMetrics = `${prometheus
  .replaceAll('\n\n', '\n')
  .replaceAll(/^(# \w+ \w+)_total/gm, '$1')
  .replace(/^# HELP a .*$/m, (line) => line.replaceAll('"', '\\"'))}# EOF\n`

const line = /^# HELP \w+ \S.*$|^# TYPE \w+ (counter|gauge|histogram)$|^(\w+(\{.+\})?) [\d.e+-]+$/

for (const [mediaType, text, end] of [
  ['text/plain', prometheus, ''],
  ['application/openmetrics-text', openMetrics, '# EOF'],
] as const) {
  describe(`metrics as ${mediaType}`, () => {
    it('have every value, label and help text, whatever its characters', () => {
      assert.equal(writeMetrics(metrics, mediaType), text)
    })

    it('of a service are such lines, and no series is there twice', async () => {
      const service = await startService('sqlite::memory:')
      await service.create('{"id":1,"name":"x"}')
      const accepted = { path: '/metrics', headers: { Accept: mediaType } }
      const { body, headers } = await service.call(accepted)
      assert.equal(headers.get('content-type'), metricsContentTypes[mediaType])
      const lines = body.split('\n').filter((one) => one !== '' && one !== end)
      assert.ok(lines.length > 200, `${lines.length} lines`)
      const series = lines.map((one) => line.exec(one)?.[2] ?? (line.test(one) ? one : ''))
      assert.ok(!series.includes(''), lines[series.indexOf('')])
      assert.equal(new Set(series).size, series.length)
    })
  })
}

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
})
