import { availableParallelism } from 'node:os'
import { cpuBetween, readCpu, readMachine, readRss } from './cpu.ts'
import type { Lab } from './lab.ts'
import { type Pattern, toCycle, type Workload } from './requests.ts'
import type { System } from './systems.ts'

/** What a slice measures, as the tables show it. */
export const measures = ['perSecond', 'p50Ms', 'p99Ms', 'cpuUs', 'rssMb'] as const
export type Measure = (typeof measures)[number]

/** One system under one load: a value of each measure for every round. */
export interface Series {
  readonly system: string
  readonly rounds: Readonly<Record<Measure, number[]>>
  readonly readP99Ms: number[]
  /** What the load cost for each request, and the shares of a core that it and the system used. */
  readonly generatorCpuUs: number[]
  readonly generatorShare: number[]
  readonly systemShare: number[]
  /** The share of all cores that processes took which are no part of it. */
  readonly otherShare: number[]
}

export interface Plan {
  readonly workload: Workload
  readonly connections: number
  readonly rounds: number
  readonly sliceMs?: number
}

/** What can be driven: a system, or something that is like one. */
export type Subject = Pick<System, 'served' | 'pids' | 'requests'> & { readonly name: string }

const defaultSliceMs = 80
/** The part before each slice that is not measured. */
const warmShare = 0.25

/**
 * Drives systems in turn, in short slices, each round in another order: what disturbs the machine for longer than a slice
 * disturbs all of them alike.
 */
export async function alternate(
  lab: Lab,
  subjects: readonly Subject[],
  { workload, connections, rounds, sliceMs = defaultSliceMs }: Plan,
): Promise<Series[]> {
  const series = subjects.map(({ name }) => newSeries(name))
  for (let round = 0; round < rounds; round++) {
    lab.progress(`${workload}, ${connections} connections: round ${round + 1} of ${rounds}`)
    for (let turn = 0; turn < subjects.length; turn++) {
      const index = (round + turn) % subjects.length
      const subject = subjects[index] as Subject
      const cycle = toCycle(subject.requests, workload)
      await measureSlice(lab, subject, { cycle, connections, sliceMs }, series[index] as Series)
    }
  }
  return series
}

/** How long before the first workload and before the others: what they share is compiled only once. */
export function toWarmMs(index: number, warmMs: number): number {
  return index === 0 ? warmMs * 3 : warmMs
}

/** Lets systems run until their code is compiled. */
export async function warmUp(
  lab: Lab,
  subjects: readonly Subject[],
  { workload, connections, forMs }: { workload: Workload; connections: number; forMs: number },
): Promise<void> {
  lab.progress(`${workload}, ${connections} connections: warming up`)
  for (const { served, requests } of subjects) {
    await lab.drive({ port: served.port, connections, cycle: toCycle(requests, workload), forMs })
  }
}

async function measureSlice(
  lab: Lab,
  { served, pids }: Subject,
  load: { cycle: readonly Pattern[]; connections: number; sliceMs: number },
  series: Series,
): Promise<void> {
  const { cycle, connections, sliceMs } = load
  const { port, pid } = served
  await lab.drive({ port, cycle, connections, forMs: sliceMs * warmShare })
  const before = readCpu(pids)
  const machineBefore = readMachine()
  const driven = await lab.drive({ port, cycle, connections, forMs: sliceMs })
  const systemMs = cpuBetween(before, readCpu(pids))
  const machineMs = readMachine() - machineBefore
  const { requests, elapsedMs, cpuMs } = driven
  const { rounds } = series
  rounds.perSecond.push((requests / elapsedMs) * 1_000)
  rounds.p50Ms.push(driven.p50Ms)
  rounds.p99Ms.push(driven.p99Ms)
  series.readP99Ms.push(driven.readP99Ms)
  rounds.cpuUs.push((systemMs / requests) * 1_000)
  rounds.rssMb.push(readRss(pid))
  series.generatorCpuUs.push((cpuMs / requests) * 1_000)
  series.generatorShare.push(cpuMs / elapsedMs)
  series.systemShare.push(systemMs / elapsedMs)
  series.otherShare.push((machineMs - systemMs - cpuMs) / (elapsedMs * availableParallelism()))
}

function newSeries(system: string): Series {
  return {
    system,
    rounds: { perSecond: [], p50Ms: [], p99Ms: [], cpuUs: [], rssMb: [] },
    readP99Ms: [],
    generatorCpuUs: [],
    generatorShare: [],
    systemShare: [],
    otherShare: [],
  }
}
