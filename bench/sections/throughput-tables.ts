import { describeSpread, isGeneratorBound, median, ratio } from '../figures.ts'
import type { Workload } from '../requests.ts'
import { toTable, toText } from '../section.ts'
import type { Measure, Series } from '../slices.ts'
import { kinds, type SystemName } from '../systems.ts'

/** Several systems under one workload; the bare echo comes first. */
export interface Comparison {
  readonly workload: Workload
  readonly connections: number
  readonly series: readonly Series[]
}

const mainConnections = 64
const titles: Record<Workload, string> = {
  create: 'Create',
  get: 'Get',
  list: 'List, a page of 100',
  mixed: '80 % get, 20 % create',
}

/** The results as Markdown: a full table for 64 connections, a short one for the other numbers. */
export function describeComparisons(comparisons: readonly Comparison[]): string {
  const workloads = [...new Set(comparisons.map(({ workload }) => workload))]
  const all = comparisons.flatMap(({ series }) => series)
  return [
    describeDuties(),
    `${describeSpread(all)}\n${describeOtherLoad(all)}`,
    ...workloads.map((workload) =>
      describeWorkload(comparisons.filter((comparison) => comparison.workload === workload)),
    ),
  ].join('\n\n')
}

function describeDuties(): string {
  const rows = Object.values(kinds).map(({ title, duties }) => [title, ...Object.values(duties)])
  return toTable(['', 'stores', 'syncs', 'checks the token', 'checks the body'], rows)
}

/** How quiet the machine was. */
function describeOtherLoad(all: readonly Series[]): string {
  const shares = all.flatMap(({ otherShare }) => otherShare)
  const mean = shares.reduce((sum, share) => sum + share, 0) / shares.length
  return `Unrelated processes used ${(mean * 100).toFixed(0)} % of the cores meanwhile.`
}

function describeWorkload(comparisons: readonly Comparison[]): string {
  const isMain = ({ connections }: Comparison) => connections === mainConnections
  const title = titles[comparisons[0]?.workload ?? 'create']
  const others = comparisons.filter((comparison) => !isMain(comparison))
  return [
    ...comparisons.filter(isMain).map(describeMain),
    ...(others.length > 0
      ? [`### ${title}, other numbers of connections\n\n${describeOthers(others)}`]
      : []),
  ].join('\n\n')
}

function describeMain({ workload, connections, series }: Comparison): string {
  const [echo] = series as [Series]
  const rows = series.map((one) => [
    toTitle(one),
    toMedian(one, 'perSecond'),
    toThroughputRatio(one, echo),
    toMedian(one, 'p50Ms'),
    toMedian(one, 'p99Ms'),
    toMedian(one, 'cpuUs'),
    ratio(one, echo, 'cpuUs').toFixed(2),
    toMedian(one, 'rssMb'),
  ])
  const head = ['', 'requests/s', '/ echo', 'p50 ms', 'p99 ms', 'CPU µs', '/ echo', 'RSS MB']
  return `### ${titles[workload]}, ${connections} connections\n\n${toTable(head, rows)}`
}

function describeOthers(comparisons: readonly Comparison[]): string {
  const measures = { perSecond: 'requests/s', p50Ms: 'p50 ms', cpuUs: 'CPU µs' } as const
  const names = comparisons[0]?.series ?? []
  const rows = names.map((one, index) => [
    toTitle(one),
    ...comparisons.flatMap(({ series }) =>
      (Object.keys(measures) as (keyof typeof measures)[]).map((measure) =>
        toMedian(series[index] as Series, measure),
      ),
    ),
  ])
  const heads = comparisons.flatMap(({ connections }) =>
    Object.values(measures).map((measure) => `${connections}: ${measure}`),
  )
  return toTable(['', ...heads], rows)
}

function toTitle({ system }: Series): string {
  return kinds[system as SystemName].title
}

function toMedian({ rounds }: Series, measure: Measure): string {
  return toText(median(rounds[measure]))
}

function toThroughputRatio(one: Series, echo: Series): string {
  if (isGeneratorBound(one) || isGeneratorBound(echo)) return 'generator-bound'
  return ratio(one, echo, 'perSecond').toFixed(2)
}
