/** Cost of a request and of a start in stores of different sizes. */
import { join } from 'node:path'
import { describeSpread, median, ratio } from '../figures.ts'
import type { Lab } from '../lab.ts'
import { plotLines } from '../plot.ts'
import { seedCount, toRequests } from '../requests.ts'
import { type Findings, type Section, type Target, toTable, toText } from '../section.ts'
import { servePlantStore } from '../serve.ts'
import { alternate, type Series, type Subject, warmUp } from '../slices.ts'
import { alternateStarts } from '../starts.ts'
import { fillStore } from '../stores.ts'
import { stopSystems } from '../systems.ts'

const operations = ['create', 'get', 'list'] as const
const connections = 64
const plans = {
  short: { sizes: [seedCount, 1_000_000], rounds: 14, starts: 5, warmMs: 1_500 },
  full: { sizes: [seedCount, 1_000_000, 10_000_000], rounds: 24, starts: 9, warmMs: 3_000 },
}
const maxRatio = 1.15

/** The results of one engine: per size, the series of each operation and the start times. */
interface Growth {
  readonly engine: string
  readonly sizes: readonly number[]
  readonly series: Readonly<Record<(typeof operations)[number], readonly Series[]>>
  readonly startMs: readonly number[][]
}

export const growth: Section = { name: 'growth', measure }

async function measure(lab: Lab): Promise<Findings> {
  const found = [
    await measureEngine(lab, 'SQLite', async (size) => `sqlite:${join(lab.folder, `${size}.db`)}`),
    await measureEngine(lab, 'PostgreSQL', (size) => lab.newDatabase(`plants_${size}`)),
  ]
  const all = found.flatMap(({ series }) => operations.flatMap((operation) => series[operation]))
  return {
    title: 'Growth',
    text: [
      `CPU time per request over ${connections} connections, and its ratio to the smallest store.
${describeSpread(all)}`,
      ...found.map(describe),
    ].join('\n\n'),
    values: found,
    targets: found.flatMap(toTargets),
    plots: { growth: plot(found) },
  }
}

function plot(found: readonly Growth[]): string {
  const lines = found.flatMap(({ engine, series }) =>
    operations.map((operation) => ({
      title: `${operation}, ${engine}`,
      values: series[operation].map((one) => ratio(one, series[operation][0] as Series, 'cpuUs')),
    })),
  )
  const labels = (found[0]?.sizes ?? []).map((size) => `${size.toLocaleString('en')} plants`)
  const title = 'CPU time per request, relative to a store of 1,000 plants'
  return plotLines(title, { labels, lines, reference: 1, max: 1.5 })
}

async function measureEngine(
  lab: Lab,
  engine: string,
  newUrl: (size: number) => Promise<string>,
): Promise<Growth> {
  const { sizes, rounds, starts, warmMs } = plans[lab.form]
  const urls: string[] = []
  for (const size of sizes) {
    const url = await newUrl(size)
    await fillStore(url, size, lab.progress)
    urls.push(url)
  }
  const starters = urls.map((url) => ({ name: url, start: () => servePlantStore(lab, url) }))
  const startMs = await alternateStarts(lab, starters, starts)
  const subjects: Subject[] = []
  for (const [index, url] of urls.entries()) {
    const server = await servePlantStore(lab, url)
    const postgres = engine === 'PostgreSQL' ? [Number((await lab.findPostgres()).process.pid)] : []
    const requests = toRequests(sizes[index] ?? 0, 200)
    subjects.push({ name: `${sizes[index]}`, server, pids: [server.pid, ...postgres], requests })
  }
  const series = { create: [] as Series[], get: [] as Series[], list: [] as Series[] }
  for (const workload of operations) {
    // Each workload warms up anew: the first access to a page costs each connection extra.
    await warmUp(lab, subjects, { workload, connections, forMs: warmMs })
    series[workload] = await alternate(lab, subjects, { workload, connections, rounds })
  }
  await stopSystems(lab, subjects)
  return { engine, sizes, series, startMs }
}

function describe({ engine, sizes, series, startMs }: Growth): string {
  const rows = sizes.map((size, index) => [
    size.toLocaleString('en'),
    ...operations.flatMap((operation) => {
      const one = series[operation][index] as Series
      const first = series[operation][0] as Series
      return [toText(median(one.rounds.cpuUs)), ratio(one, first, 'cpuUs').toFixed(2)]
    }),
    toText(median(startMs[index] ?? [])),
    toStartRatio(startMs, index).toFixed(2),
  ])
  const operationHeads = operations.flatMap((operation) => [`${operation}, µs`, 'ratio'])
  const head = ['plants', ...operationHeads, 'start, ms', 'ratio']
  return `### ${engine}\n\n${toTable(head, rows)}`
}

function toTargets({ engine, sizes, series, startMs }: Growth): Target[] {
  const last = sizes.length - 1
  const [largest, smallest] = [sizes[last], sizes[0]].map((size) => size?.toLocaleString('en'))
  const title = `${largest} plants / ${smallest}, ${engine}`
  const bound = { max: maxRatio }
  return [
    ...operations.map((operation) => ({
      title: `${title}: CPU per ${operation}`,
      value: ratio(series[operation][last] as Series, series[operation][0] as Series, 'cpuUs'),
      bound,
    })),
    { title: `${title}: start`, value: toStartRatio(startMs, last), bound },
  ]
}

function toStartRatio(startMs: readonly number[][], index: number): number {
  const [smallest = []] = startMs
  return median((startMs[index] ?? []).map((ms, round) => ms / (smallest[round] ?? Number.NaN)))
}
