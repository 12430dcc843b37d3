import { availableParallelism } from 'node:os'
import { cpuBetween, readCpu, readMachine, readRss } from './cpu.ts'
import type { Load } from './generator.ts'
import type { Lab } from './lab.ts'
import { toCycle, type Workload } from './requests.ts'
import type { System } from './systems.ts'

/** The measures of a slice, in the order of the tables. */
export const measures = ['perSecond', 'p50Ms', 'p99Ms', 'cpuUs', 'rssMb'] as const
export type Measure = (typeof measures)[number]

/** One system under one load: a value per measure and round. */
export interface Series {
  readonly system: string
  readonly rounds: Readonly<Record<Measure, number[]>>
  readonly readP99Ms: number[]
  /** The shares of a core that both sides used. */
  readonly generatorShare: number[]
  readonly systemShare: number[]
  /** The share of all cores that unrelated processes used. */
  readonly otherShare: number[]
}

export interface Plan {
  readonly workload: Workload
  readonly connections: number
  readonly rounds: number
  readonly pipelined?: number
  readonly sliceMs?: number
}

/** A running system to measure. */
export type Subject = Pick<System, 'server' | 'pids' | 'requests'> & { readonly name: string }

const defaultSliceMs = 80
/** The length of the unmeasured start of each slice, as a share of the slice. */
const warmShare = 0.25

/**
 * Drives systems in turn, in short slices, in another order each round: a disturbance of the
 * machine that lasts longer than a slice hits all of them alike.
 */
export async function alternate(
  lab: Lab,
  subjects: readonly Subject[],
  { rounds, ...plan }: Plan,
): Promise<Series[]> {
  const { workload, connections, pipelined = 1, sliceMs = defaultSliceMs } = plan
  const series = subjects.map(({ name }) => newSeries(name))
  for (let round = 0; round < rounds; round++) {
    lab.progress(`${workload}, ${connections} connections: round ${round + 1} of ${rounds}`)
    for (let turn = 0; turn < subjects.length; turn++) {
      const index = (round + turn) % subjects.length
      const subject = subjects[index] as Subject
      const cycle = toCycle(subject.requests, workload)
      await measureSlice(
        lab,
        subject,
        { cycle, connections, pipelined, forMs: sliceMs },
        series[index] as Series,
      )
    }
  }
  return series
}

/** A workload, for a time or up to a number of requests. */
type WarmUp = { readonly workload: Workload } & Pick<
  Load,
  'connections' | 'pipelined' | 'forMs' | 'requests'
>

/** Runs a workload until the code of the systems is compiled. */
export async function warmUp(
  lab: Lab,
  subjects: readonly Subject[],
  { workload, ...load }: WarmUp,
): Promise<void> {
  lab.progress(`${workload}, ${load.connections} connections: warming up`)
  for (const { server, requests } of subjects) {
    await lab.drive({ ...load, port: server.port, cycle: toCycle(requests, workload) })
  }
}

async function measureSlice(
  lab: Lab,
  { server, pids }: Subject,
  own: Omit<Load, 'port'> & { readonly forMs: number },
  series: Series,
): Promise<void> {
  const { port, pid } = server
  const load = { port, ...own }
  await lab.drive({ ...load, forMs: own.forMs * warmShare })
  const before = readCpu(pids)
  const machineBefore = readMachine()
  const result = await lab.drive(load)
  const systemMs = cpuBetween(before, readCpu(pids))
  const machineMs = readMachine() - machineBefore
  const { requests, elapsedMs, cpuMs } = result
  const { rounds } = series
  rounds.perSecond.push((requests / elapsedMs) * 1_000)
  rounds.p50Ms.push(result.p50Ms)
  rounds.p99Ms.push(result.p99Ms)
  series.readP99Ms.push(result.readP99Ms)
  rounds.cpuUs.push((systemMs / requests) * 1_000)
  rounds.rssMb.push(readRss(pid))
  series.generatorShare.push(cpuMs / elapsedMs)
  series.systemShare.push(systemMs / elapsedMs)
  series.otherShare.push((machineMs - systemMs - cpuMs) / (elapsedMs * availableParallelism()))
}

function newSeries(system: string): Series {
  return {
    system,
    rounds: { perSecond: [], p50Ms: [], p99Ms: [], cpuUs: [], rssMb: [] },
    readP99Ms: [],
    generatorShare: [],
    systemShare: [],
    otherShare: [],
  }
}
