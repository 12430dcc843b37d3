/** Requests per second, latency, CPU time and memory of every system, next to the bare echo. */
import { describeSpread, isGeneratorBound, median, ratio } from '../figures.ts'
import type { Lab } from '../lab.ts'
import { type Operation, operations } from '../requests.ts'
import {
  type Figure,
  type Findings,
  type Section,
  type Target,
  toTable,
  toText,
} from '../section.ts'
import { alternate, type Measure, type Series, warmUp } from '../slices.ts'
import { kinds, listSystems, type SystemName, startSystems, stopSystems } from '../systems.ts'

/** Several systems under one load; the bare echo comes first. */
interface Comparison {
  readonly workload: Operation
  readonly connections: number
  readonly series: readonly Series[]
}

/** V8 compiles what has run often: one connection alone would still compile while measured. */
const minWarmConnections = 64
const lone = { workload: 'create', connections: 1 } as const
const plans = {
  short: { rounds: 24, warmMs: 800, steps: [...toSteps(64), lone] },
  full: { rounds: 60, warmMs: 3_000, steps: [...toSteps(64), lone, ...toSteps(256)] },
}
const titles: Record<Operation, string> = {
  create: 'Create',
  get: 'Get',
  list: 'List, a page of 100',
}

function toSteps(connections: number) {
  return operations.map((workload) => ({ workload, connections }))
}

export const throughput: Section = { name: 'throughput', measure }

async function measure(lab: Lab): Promise<Findings> {
  const { rounds, warmMs, steps } = plans[lab.form]
  const systems = await startSystems(lab, listSystems(lab))
  const comparisons: Comparison[] = []
  for (const [index, { workload, connections }] of steps.entries()) {
    await warmUp(lab, systems, {
      workload,
      connections: Math.max(connections, minWarmConnections),
      // The first workload also compiles the code that all share.
      forMs: index === 0 ? warmMs * 3 : warmMs,
    })
    const series = await alternate(lab, systems, { workload, connections, rounds })
    comparisons.push({ workload, connections, series })
  }
  await stopSystems(lab, systems)
  const all = comparisons.flatMap(({ series }) => series)
  return {
    title: 'Throughput, latency, CPU time, memory',
    text: [
      `${describeSpread(all)}\n${describeOtherLoad(all)}`,
      ...comparisons.map(describeComparison),
    ].join('\n\n'),
    values: comparisons,
    targets: toTargets(comparisons),
    figures: toFigures(comparisons),
  }
}

/** How quiet the machine was. */
function describeOtherLoad(all: readonly Series[]): string {
  const shares = all.flatMap(({ otherShare }) => otherShare)
  const mean = shares.reduce((sum, share) => sum + share, 0) / shares.length
  return `Unrelated processes used ${(mean * 100).toFixed(0)} % of the cores meanwhile.`
}

export function describeComparison({ workload, connections, series }: Comparison): string {
  const [echo] = series as [Series]
  const rows = series.map((one) => [
    toTitle(one),
    toText(median(one.rounds.perSecond)),
    isGeneratorBound(one) || isGeneratorBound(echo)
      ? 'generator-bound'
      : ratio(one, echo, 'perSecond').toFixed(2),
    toText(median(one.rounds.p50Ms)),
    toText(median(one.rounds.p99Ms)),
    toText(median(one.rounds.cpuUs)),
    ratio(one, echo, 'cpuUs').toFixed(2),
    toText(median(one.rounds.rssMb)),
  ])
  const head = ['', 'requests/s', '/ echo', 'p50 ms', 'p99 ms', 'CPU µs', '/ echo', 'RSS MB']
  const load = connections === 1 ? 'one connection' : `${connections} connections`
  return `### ${titles[workload]}, ${load}\n\n${toTable(head, rows)}`
}

function toTitle({ system }: Series): string {
  return kinds[system as SystemName].title
}

function toFigures(comparisons: readonly Comparison[]): Figure[] {
  const toFigure = (title: string, workload: Operation, connections: number, measure: Measure) => {
    const series = find(comparisons, workload, connections)
    const values = series.map((one) => [toTitle(one), median(one.rounds[measure])])
    return { title, values: Object.fromEntries(values) }
  }
  return [
    toFigure('creates/s', 'create', 64, 'perSecond'),
    toFigure('CPU of a create, µs', 'create', 64, 'cpuUs'),
    toFigure('gets/s', 'get', 64, 'perSecond'),
    toFigure('a lone create, ms', 'create', 1, 'p50Ms'),
  ]
}

function find(comparisons: readonly Comparison[], workload: Operation, connections: number) {
  const isWanted = (one: Comparison) => one.workload === workload && one.connections === connections
  return comparisons.find(isWanted)?.series ?? []
}

/** The claims about Plant Store's speed, relative to the other systems of the same run. */
function toTargets(comparisons: readonly Comparison[]): Target[] {
  function compare(
    title: string,
    [workload, connections, measure]: [Operation, number, Measure],
    [ours, other]: [SystemName, SystemName],
    bound: Target['bound'],
  ): Target[] {
    const series = find(comparisons, workload, connections)
    const [one, two] = [ours, other].map((name) => series.find(({ system }) => system === name))
    if (one === undefined || two === undefined) return []
    const isRefused = measure === 'perSecond' && [one, two].some(isGeneratorBound)
    return [
      {
        title: `${title}: ${kinds[ours].title} / ${kinds[other].title}`,
        value: ratio(one, two, measure),
        bound,
        ...(isRefused && { refused: 'generator-bound' }),
      },
    ]
  }

  const rate = ['create', 64, 'perSecond'] as const
  const sqlite = ['ours-sqlite', 'baseline-sqlite'] as [SystemName, SystemName]
  const postgres = ['ours-postgres', 'baseline-postgres'] as [SystemName, SystemName]
  return [
    ...compare('CPU of a create', ['create', 64, 'cpuUs'], ['ours-sqlite', 'echo'], { max: 1.15 }),
    ...compare('creates/s', [...rate], ['ours-sqlite', 'echo'], { min: 0.85 }),
    ...compare('creates/s', [...rate], sqlite, { min: 3.6 }),
    ...compare('creates/s', [...rate], postgres, { min: 2.6 }),
    ...compare('creates/s', [...rate], ['ours-sqlite', 'pocketbase'], { min: 1 }),
    ...compare('a lone create, p50', ['create', 1, 'p50Ms'], sqlite, { max: 1.2 }),
    ...compare('a lone create, p50', ['create', 1, 'p50Ms'], postgres, { max: 1.2 }),
    ...[sqlite, postgres].flatMap((pair) => [
      ...compare('CPU of a get', ['get', 64, 'cpuUs'], pair, { max: 1 }),
      ...compare('CPU of a list', ['list', 64, 'cpuUs'], pair, { max: 1 }),
    ]),
  ]
}
