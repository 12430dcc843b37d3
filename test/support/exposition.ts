import assert from 'node:assert/strict'
import type { MetricsMediaType } from '../../src/metrics/metric.ts'

/** A metric as a scraper reads it. */
export interface Family {
  readonly name: string
  readonly help: string
  readonly type: string
  readonly samples: { name: string; labels: Record<string, string>; value: number }[]
}

const open: MetricsMediaType = 'application/openmetrics-text'
const name = '[a-zA-Z_:][a-zA-Z0-9_:]*'
const label = '([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\\\n]|\\\\[\\\\"n])*)"'
const number = '[+-]?(?:Inf|\\d+(?:\\.\\d+)?(?:e[+-]?\\d+)?)|NaN'
const help = new RegExp(`^# HELP (${name}) (.*)$`)
const type = new RegExp(`^# TYPE (${name}) (counter|gauge|histogram)$`)
const sample = new RegExp(`^(${name})(?:\\{(${label}(?:,${label})*)\\})? (${number})$`)

/**
 * Reads metrics by the grammars of the text format of Prometheus and of OpenMetrics, and throws at
 * the first line that breaks one. A judge of our writer that shares no code with it.
 */
export function readExposition(text: string, mediaType: MetricsMediaType): Family[] {
  const isOpen = mediaType === open
  const end = isOpen ? '\n# EOF\n' : '\n'
  assert.ok(text.endsWith(end), 'the end is missing')
  const lines = text.slice(0, -end.length).split('\n')
  const families = new Map<string, Family>()
  const series = new Set<string>()
  let family: Family | undefined
  while (lines.length > 0) {
    const line = lines.shift() as string
    if (line === '' && !isOpen) continue
    if (line.startsWith('# HELP ')) {
      family = readHead(line, lines.shift() ?? '', mediaType)
      assert.ok(!families.has(family.name), `twice: ${family.name}`)
      families.set(family.name, family)
      continue
    }
    const [, sampleName = '', labels = '', value = ''] = toGroups(sample.exec(line), line)
    assert.ok(family, `a sample without a metric: ${line}`)
    assert.ok(suffixesOf(family.type, mediaType).includes(toSuffix(sampleName, family)), line)
    const key = `${sampleName}{${labels}}`
    assert.ok(!series.has(key), `twice: ${key}`)
    series.add(key)
    family.samples.push({ name: sampleName, labels: readLabels(labels), value: toNumber(value) })
  }
  for (const read of families.values()) judge(read)
  return [...families.values()]
}

function readHead(helpLine: string, typeLine: string, mediaType: MetricsMediaType): Family {
  const [, named = '', said = ''] = help.exec(helpLine) ?? assert.fail(helpLine)
  const [, typed = '', kind = ''] = type.exec(typeLine) ?? assert.fail(typeLine)
  assert.equal(typed, named)
  if (kind === 'counter') assert.equal(named.endsWith('_total'), mediaType !== open, named)
  const allowed = mediaType === open ? /^(?:[^"\\]|\\[\\"n])*$/ : /^(?:[^\\]|\\[\\n])*$/
  assert.match(said, allowed)
  return { name: named, help: toPlain(said), type: kind, samples: [] }
}

function toGroups(found: RegExpExecArray | null, line: string): string[] {
  assert.ok(found, `not a sample: ${line}`)
  return ['', found[1] ?? '', found[2] ?? '', found.at(-1) ?? '']
}

function suffixesOf(kind: string, mediaType: MetricsMediaType): string[] {
  if (kind === 'histogram') return ['_bucket', '_sum', '_count']
  return kind === 'counter' && mediaType === open ? ['_total'] : ['']
}

function toSuffix(sampleName: string, family: Family): string {
  assert.ok(sampleName.startsWith(family.name), `${sampleName} below ${family.name}`)
  return sampleName.slice(family.name.length)
}

function readLabels(text: string): Record<string, string> {
  const pairs = [...text.matchAll(new RegExp(label, 'g'))]
  const labels = Object.fromEntries(pairs.map(([, key = '', value = '']) => [key, toPlain(value)]))
  assert.equal(Object.keys(labels).length, pairs.length, `twice the same label: ${text}`)
  return labels
}

function toPlain(text: string): string {
  return text.replaceAll(/\\(.)/g, (_, escaped) => (escaped === 'n' ? '\n' : escaped))
}

function toNumber(text: string): number {
  return Number(text.replace('Inf', 'Infinity'))
}

/** What the grammar does not say: totals are not negative, and buckets add up. */
function judge({ name, type, samples }: Family): void {
  if (type === 'counter') for (const { value } of samples) assert.ok(value >= 0, name)
  if (type !== 'histogram') return
  const byLabels = Map.groupBy(samples, ({ labels: { le, ...others } }) => JSON.stringify(others))
  for (const [labels, group] of byLabels) {
    const buckets = group.filter((one) => one.name === `${name}_bucket`)
    const bounds = buckets.map((bucket) => toNumber(bucket.labels.le ?? ''))
    const counts = buckets.map(({ value }) => value)
    assert.deepEqual(
      bounds,
      [...new Set(bounds)].sort((one, other) => one - other),
      labels,
    )
    assert.deepEqual(
      counts,
      counts.toSorted((one, other) => one - other),
      labels,
    )
    assert.equal(bounds.at(-1), Number.POSITIVE_INFINITY, labels)
    const count = group.filter((one) => one.name === `${name}_count`)
    assert.deepEqual(
      count.map(({ value }) => value),
      [counts.at(-1)],
      labels,
    )
    assert.equal(group.length, buckets.length + 2, labels)
  }
}
