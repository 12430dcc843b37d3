/** Requests per second, latency, CPU time and memory of every system, next to the bare echo. */
import { median } from '../figures.ts'
import type { Lab } from '../lab.ts'
import { type Bar, plotBars } from '../plot.ts'
import type { Workload } from '../requests.ts'
import type { Findings, Section } from '../section.ts'
import { alternate, type Measure, toWarmMs, warmUp } from '../slices.ts'
import {
  kinds,
  listSystems,
  peers,
  type SystemName,
  startSystems,
  stopSystems,
} from '../systems.ts'
import { type Comparison, describeComparisons } from './throughput-tables.ts'
import { toTargets } from './throughput-targets.ts'

interface Step {
  readonly workload: Workload
  readonly connections: number
}

const minWarmConnections = 64
const maxPlottedCpuUs = 400
const workloads = ['create', 'get', 'list', 'mixed'] as const
const plans = {
  short: {
    rounds: 12,
    warmMs: 500,
    steps: [...toSteps(64), { workload: 'create', connections: 1 } as const],
  },
  full: { rounds: 24, warmMs: 1_500, steps: [64, 1, 8, 256].flatMap(toSteps) },
}

function toSteps(connections: number): Step[] {
  return workloads.map((workload) => ({ workload, connections }))
}

export const throughput: Section = { name: 'throughput', measure }

async function measure(lab: Lab): Promise<Findings> {
  const { rounds, warmMs, steps } = plans[lab.form]
  const systems = await startSystems(lab, listSystems(lab))
  const comparisons: Comparison[] = []
  for (const [index, { workload, connections }] of steps.entries()) {
    const subjects = systems.filter(({ name }) => takesPart(name, { workload, connections }))
    await warmUp(lab, subjects, {
      workload,
      // V8 compiles what has run often: one connection alone would still compile while measured.
      connections: Math.max(connections, minWarmConnections),
      forMs: toWarmMs(index, warmMs),
    })
    const series = await alternate(lab, subjects, { workload, connections, rounds })
    comparisons.push({ workload, connections, series })
  }
  await stopSystems(lab, systems)
  return {
    title: 'Throughput, latency, CPU time, memory',
    text: describeComparisons(comparisons),
    values: comparisons,
    targets: toTargets(comparisons),
    plots: plot(comparisons),
  }
}

/** Peers are compared over 64 connections, in the operations that they have. */
function takesPart(name: SystemName, { workload, connections }: Step): boolean {
  return !peers.includes(name) || (connections === 64 && workload !== 'mixed')
}

/** Creates over 64 connections: their rate and their CPU time. */
function plot(comparisons: readonly Comparison[]): Record<string, string> {
  const creates = comparisons.find(
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
    'cpu-per-create': plotBars(
      'CPU time per create in µs, 64 connections',
      toBars('cpuUs'),
      maxPlottedCpuUs,
    ),
  }
}
