/** What a request and a start cost in stores of different sizes. */
import { join } from 'node:path'
import { describeCells, median, ratio, toFigure } from '../figures.ts'
import type { Lab } from '../lab.ts'
import { plotLines } from '../plot.ts'
import { seedCount, toRequests } from '../requests.ts'
import { type Findings, type Section, type Target, toTable, toText } from '../section.ts'
import { alternate, type Series, type Subject, warmUp } from '../slices.ts'
import { alternateStarts } from '../starts.ts'
import { fillStore } from '../stores.ts'
import { serveOurs, stopSystems } from '../systems.ts'

const operations = ['create', 'get', 'list'] as const
const plans = {
  short: { sizes: [seedCount, 1_000_000], rounds: 14, starts: 5, warmMs: 1_500 },
  full: { sizes: [seedCount, 1_000_000, 10_000_000], rounds: 24, starts: 9, warmMs: 3_000 },
}
const maxRatio = 1.15

/** What was found for one engine: for each size, the series of each operation and the starts. */
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
  return {
    title: 'Growth',
    text: [
      describeCells(plans[lab.form].rounds, `among ${seedCount.toLocaleString('en')} plants`),
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
  const places = (found[0]?.sizes ?? []).map((size) => `${size.toLocaleString('en')} plants`)
  const title = 'CPU time of a request, beside that in a store of 1,000 plants'
  return plotLines(title, { places, lines, limit: 1, highest: 1.5 })
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
  const starters = urls.map((url) => ({ name: url, start: () => serveOurs(lab, url) }))
  const startMs = await alternateStarts(lab, starters, starts)
  const subjects: Subject[] = []
  for (const [index, url] of urls.entries()) {
    const served = await serveOurs(lab, url)
    const server = engine === 'PostgreSQL' ? [Number((await lab.findPostgres()).process.pid)] : []
    const requests = toRequests(sizes[index] ?? 0, 200)
    subjects.push({ name: `${sizes[index]}`, served, pids: [served.pid, ...server], requests })
  }
  const series = { create: [] as Series[], get: [] as Series[], list: [] as Series[] }
  for (const workload of operations) {
    // Before each: every connection of the engine meets a page for the first time once.
    await warmUp(lab, subjects, { workload, connections: 64, forMs: warmMs })
    series[workload] = await alternate(lab, subjects, { workload, connections: 64, rounds })
  }
  await stopSystems(lab, subjects)
  return { engine, sizes, series, startMs }
}

function describe({ engine, sizes, series, startMs }: Growth): string {
  const rows = sizes.map((size, index) => [
    size.toLocaleString('en'),
    ...operations.map((operation) => {
      const one = series[operation][index] as Series
      const { median: middle, spread } = toFigure(one.rounds.cpuUs)
      const beside = ratio(one, series[operation][0] as Series, 'cpuUs').toFixed(2)
      return `${toText(middle)} ±${spread.toFixed(0)} % (${beside})`
    }),
    `${toText(median(startMs[index] ?? []))} (${toStartRatio(startMs, index).toFixed(2)})`,
  ])
  const head = [
    'plants at first',
    'create, CPU µs',
    'get, CPU µs',
    'page of 100, CPU µs',
    'start, ms',
  ]
  return `### Plant Store, ${engine}, 64 connections\n\n${toTable(head, rows)}`
}

function toTargets({ engine, sizes, series, startMs }: Growth): Target[] {
  const last = sizes.length - 1
  const title = `${(sizes[last] ?? 0).toLocaleString('en')} plants / ${sizes[0]?.toLocaleString('en')}, ${engine}`
  const bound = { most: maxRatio }
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
  const [none = []] = startMs
  return median((startMs[index] ?? []).map((ms, round) => ms / (none[round] ?? Number.NaN)))
}
