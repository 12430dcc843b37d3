/** CPU time and memory of processes, read from /proc; Linux only. */
import { readdirSync, readFileSync } from 'node:fs'

const msPerTick = 10

/** CPU time of process trees at one moment: nanoseconds by thread, clock ticks by process. */
export interface CpuReading {
  readonly threads: ReadonlyMap<string, number>
  readonly ticks: ReadonlyMap<number, number>
}

export function requireProc(): void {
  if (process.platform === 'linux') return
  console.error(
    `npm run bench reads CPU times from /proc, so it needs Linux; this is ${process.platform}.`,
  )
  process.exit(1)
}

/** Reads the CPU time of these processes and all their descendants. */
export function readCpu(roots: readonly number[]): CpuReading {
  const threads = new Map<string, number>()
  const ticks = new Map<number, number>()
  const visit = (pid: number) => {
    ticks.set(pid, readTicks(pid))
    for (const thread of list(`/proc/${pid}/task`)) {
      const path = `/proc/${pid}/task/${thread}`
      threads.set(thread, Number(read(`${path}/schedstat`).split(' ')[0]))
      const children = read(`${path}/children`).split(' ')
      for (const child of children) if (child !== '') visit(Number(child))
    }
  }
  for (const root of roots) visit(root)
  return { threads, ticks }
}

/**
 * The milliseconds between two readings. A thread that ended in between took its nanoseconds along,
 * but its process still counts them in ticks: then the larger of the two sums is returned.
 */
export function cpuBetween(before: CpuReading, after: CpuReading): number {
  const byThread = sumOfGrowth(before.threads, after.threads) / 1e6
  const hasLost = [...before.threads.keys()].some((thread) => !after.threads.has(thread))
  if (!hasLost) return byThread
  return Math.max(byThread, sumOfGrowth(before.ticks, after.ticks) * msPerTick)
}

function sumOfGrowth<Key>(before: ReadonlyMap<Key, number>, after: ReadonlyMap<Key, number>) {
  let sum = 0
  for (const [key, value] of after) sum += value - (before.get(key) ?? 0)
  return sum
}

/** The milliseconds that all cores together have been busy since the machine booted. */
export function readMachine(): number {
  const [, user, nice, system, , , interrupts, softInterrupts, stolen] = read('/proc/stat')
    .split('\n', 1)
    .flatMap((line) => line.split(/ +/).map(Number))
  const all = [user, nice, system, interrupts, softInterrupts, stolen]
  return all.reduce<number>((sum, ticks = 0) => sum + ticks, 0) * msPerTick
}

/** The resident memory of a process, in megabytes. */
export function readRss(pid: number): number {
  const status = readFileSync(`/proc/${pid}/status`, 'latin1')
  return Number(/VmRSS:\s+(\d+)/.exec(status)?.[1]) / 1_024
}

function readTicks(pid: number): number {
  const fields = read(`/proc/${pid}/stat`).split(') ')[1]?.split(' ') ?? []
  return Number(fields[11] ?? 0) + Number(fields[12] ?? 0)
}

/** Reads a file; returns '' if its process or thread has just ended. */
function read(path: string): string {
  return orEmpty('', () => readFileSync(path, 'latin1'))
}

function list(path: string): string[] {
  return orEmpty([], () => readdirSync(path))
}

function orEmpty<Value>(empty: Value, look: () => Value): Value {
  try {
    return look()
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    if (code === 'ENOENT' || code === 'ESRCH') return empty
    throw error
  }
}
