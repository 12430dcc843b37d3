/** Requests per second, latency, CPU time and memory of every system, beside the bare echo. */
import { describeCells, isGeneratorBound, median, ratio, toFigure } from '../figures.ts'
import type { Lab } from '../lab.ts'
import { type Bar, plotBars } from '../plot.ts'
import type { Workload } from '../requests.ts'
import { type Findings, type Section, toTable, toText } from '../section.ts'
import { alternate, type Measure, measures, type Series, toWarmMs, warmUp } from '../slices.ts'
import { kinds, namesOfAll, peers, type SystemName, startSystems, stopSystems } from '../systems.ts'
import { toTargets } from './throughput-targets.ts'

/** One load on several systems. */
export interface Load {
  readonly workload: Workload
  readonly connections: number
  readonly series: readonly Series[]
}

interface Step {
  readonly workload: Workload
  readonly connections: number
}

const warmConnections = 64
const workloads = ['create', 'get', 'list', 'mixed'] as const
const plans = {
  short: {
    rounds: 12,
    warmMs: 500,
    steps: [...workloads.map((workload) => ({ workload, connections: 64 })), alone('create')],
  },
  full: {
    rounds: 24,
    warmMs: 1_500,
    steps: [64, 1, 8, 256].flatMap((connections) =>
      workloads.map((workload) => ({ workload, connections })),
    ),
  },
}

function alone(workload: Workload): Step {
  return { workload, connections: 1 }
}

export const throughput: Section = { name: 'throughput', measure }

async function measure(lab: Lab): Promise<Findings> {
  const { rounds, warmMs, steps } = plans[lab.form]
  const systems = await startSystems(lab, namesOfAll)
  const loads: Load[] = []
  for (const [index, { workload, connections }] of steps.entries()) {
    const subjects = systems.filter(({ name }) => takesPart(name, { workload, connections }))
    await warmUp(lab, subjects, {
      workload,
      // Code is compiled by how often it ran: over one connection it would be compiled while it is measured.
      connections: Math.max(connections, warmConnections),
      forMs: toWarmMs(index, warmMs),
    })
    const series = await alternate(lab, subjects, { workload, connections, rounds })
    loads.push({ workload, connections, series })
  }
  await stopSystems(lab, systems)
  return {
    title: 'Throughput, latency, CPU time, memory',
    text: [
      describeSystems(),
      `${describeOthers(loads)} ${describeCells(rounds, 'of the ceiling')}`,
      ...loads.map(describeLoad),
    ].join('\n\n'),
    values: loads,
    targets: toTargets(loads),
    plots: plot(loads),
  }
}

/** Creates over 64 connections: how many, and what each costs. */
function plot(loads: readonly Load[]): Record<string, string> {
  const creates = loads.find(
    ({ workload, connections }) => workload === 'create' && connections === 64,
  )
  const toBars = (measure: Measure) =>
    (creates?.series ?? []).map(
      ({ system, rounds }): Bar => ({
        title: kinds[system as SystemName].title,
        value: median(rounds[measure]),
        kind: system === 'echo' ? 'ceiling' : system.startsWith('ours') ? 'ours' : 'other',
      }),
    )
  const rates = toBars('perSecond')
  return {
    'creates-per-second': plotBars(
      'Creates per second, 64 connections',
      rates,
      Math.max(...rates.map(({ value }) => value)),
    ),
    'cpu-per-create': plotBars('CPU time of a create in µs, 64 connections', toBars('cpuUs'), 400),
  }
}

/** Peers are compared at 64 connections, in what they can do. */
function takesPart(name: SystemName, { workload, connections }: Step): boolean {
  return !peers.includes(name) || (connections === 64 && workload !== 'mixed')
}

function describeSystems(): string {
  const rows = Object.values(kinds).map(({ title, does }) => [title, ...Object.values(does)])
  return toTable(['what each does', 'stores', 'syncs', 'checks the token', 'checks the body'], rows)
}

/** How quiet the machine was. */
function describeOthers(loads: readonly Load[]): string {
  const shares = loads.flatMap(({ series }) => series.flatMap(({ otherShare }) => otherShare))
  const mean = shares.reduce((sum, share) => sum + share, 0) / shares.length
  return `While the load ran, processes that are no part of it took ${(mean * 100).toFixed(0)} % of the cores.`
}

function describeLoad({ workload, connections, series }: Load): string {
  const [ceiling] = series
  const rows = series.map((one) => [
    kinds[one.system as SystemName].title,
    ...measures.map((measure) => toCell(one, ceiling as Series, measure)),
    toText(median(one.generatorCpuUs)),
  ])
  const head = ['', 'requests/s', 'p50 ms', 'p99 ms', 'CPU µs', 'RSS MB', 'load CPU µs']
  const plural = connections === 1 ? 'connection' : 'connections'
  return `### ${describe(workload)}, ${connections} ${plural}\n\n${toTable(head, rows)}`
}

/** The median, how far the middle half of the rounds lies apart, and the ratio to the ceiling. */
function toCell(one: Series, ceiling: Series, measure: Measure): string {
  const { median: middle, spread } = toFigure(one.rounds[measure])
  const isRefused = measure === 'perSecond' && (isGeneratorBound(one) || isGeneratorBound(ceiling))
  const beside = isRefused ? 'generator-bound' : ratio(one, ceiling, measure).toFixed(2)
  return `${toText(middle)} ±${spread.toFixed(0)} % (${beside})`
}

function describe(workload: Workload): string {
  const texts = {
    create: 'Create',
    get: 'Get',
    list: 'List, a page of 100',
    mixed: '80 % get, 20 % create',
  }
  return texts[workload]
}
