import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import {
  type Metric,
  metricsContentTypes,
  toCounter,
  toGauge,
  toHistogram,
  writeMetrics,
} from '../../src/metrics/metric.ts'
import { buildHistogram, observe } from '../../src/store/measures.ts'
import { type Family, readExposition } from '../support/exposition.ts'
import { startService } from '../support/service.ts'

const mediaTypes = ['text/plain', 'application/openmetrics-text'] as const
const awkward = 'a "quote", a \\ and a \\n,\nthen a new line {le="1"} 5'

function newMetrics(): Metric[] {
  const histogram = buildHistogram([0.0005, 1, 16_777_216])
  for (const value of [0.0001, 0.5, 2, 1e9]) observe(histogram, value)
  return [
    toCounter('a_total', awkward, [
      [{ kind: awkward, status: 200 }, 1],
      [{ kind: '', status: 0 }, 1e21],
    ]),
    toCounter('b_total', 'Has no samples.', []),
    toGauge('c', 'Unusual values.', [
      [{ kind: 'small' }, 5e-324],
      [{ kind: 'large' }, Number.MAX_VALUE],
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
}

/** What a scraper has to read. */
function toFamilies(metrics: Metric[], mediaType: (typeof mediaTypes)[number]): Family[] {
  return metrics.map(({ name, help, type, values }) => ({
    name: mediaType === 'text/plain' ? name : name.replace('_total', ''),
    help,
    type,
    samples: values.map(({ metricName = name, labels, value }) => {
      const texts = Object.entries(labels).map(([key, text]) => [key, String(text)])
      return { name: metricName, labels: Object.fromEntries(texts), value }
    }),
  }))
}

for (const mediaType of mediaTypes) {
  describe(`metrics as ${mediaType}`, () => {
    it('have every value, label and help text, whatever its characters', () => {
      const metrics = newMetrics()
      const families = readExposition(writeMetrics(metrics, mediaType), mediaType)
      assert.deepEqual(families, toFamilies(metrics, mediaType))
    })

    it('of a service follow the grammar', async () => {
      const service = await startService('sqlite::memory:')
      await service.create('{"id":1,"name":"x"}')
      const { body, headers } = await service.call({
        path: '/metrics',
        headers: { Accept: mediaType },
      })
      assert.equal(headers.get('content-type'), metricsContentTypes[mediaType])
      const families = readExposition(body, mediaType)
      const filled = families.filter(({ samples }) => samples.length > 0)
      assert.ok(filled.length > 30, String(filled.length))
    })
  })
}

describe('the judge of metrics', () => {
  const good = writeMetrics(newMetrics(), 'text/plain')
  const mistakes: Record<string, [string, string]> = {
    'a metric twice': ['# HELP d ', '# HELP c '],
    'a name with a hyphen': ['\nd 0', '\nd-e 0'],
    'a label without quotes': ['kind="small"', 'kind=small'],
    'a line end inside a label': ['kind="small"', 'kind="sm\nall"'],
    'an unknown escape': ['kind="small"', 'kind="\\small"'],
    'a series twice': ['kind="small"', 'kind="large"'],
    'a value that is no number': ['\nd 0', '\nd zero'],
    'a negative total': [' 1e+21', ' -1e+21'],
    'buckets that fall': ['le="1"} 2', 'le="1"} 5'],
    'a count beside the last bucket': ['_count{place="y"} 0', '_count{place="y"} 1'],
    'no line end': ['e_seconds_count{place="y"} 0\n', 'e_seconds_count{place="y"} 0'],
  }
  for (const [mistake, [text, wrong]] of Object.entries(mistakes)) {
    it(`finds ${mistake}`, () => {
      assert.ok(good.includes(text))
      assert.throws(() =>
        readExposition(
          good.replace(text, () => wrong),
          'text/plain',
        ),
      )
    })
  }

  it('finds what only OpenMetrics forbids', () => {
    const open = writeMetrics(newMetrics(), 'application/openmetrics-text')
    const wrongs = [
      open.replace('# EOF\n', ''),
      `${open}\n`,
      open.replace('\n# HELP d', '\n\n# HELP d'),
      open.replaceAll(/(# (?:HELP|TYPE) a) /g, '$1_total '),
    ]
    for (const wrong of wrongs)
      assert.throws(() => readExposition(wrong, 'application/openmetrics-text'))
  })
})
