/** What processes cost, seen from outside: read from /proc, so on Linux only. */
import { readdirSync, readFileSync } from 'node:fs'

const msPerTick = 10

/** The CPU time of process trees at one moment, by thread in nanoseconds, and by process in ticks. */
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

/** Reads the CPU time of these processes and of all their descendants. */
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
 * The milliseconds between two readings. A thread that ended in between took its nanoseconds with it; the ticks of its
 * process still count it, so then the larger of both is taken.
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

/** The milliseconds that all cores were busy since the machine started, with whatever. */
export function readMachine(): number {
  const [, user, nice, system, , , interrupts, softInterrupts, stolen] = read('/proc/stat')
    .split('\n', 1)
    .flatMap((line) => line.split(/ +/).map(Number))
  const all = [user, nice, system, interrupts, softInterrupts, stolen]
  return all.reduce<number>((sum, ticks = 0) => sum + ticks, 0) * msPerTick
}

/** The memory that a process holds right now, in megabytes. */
export function readRss(pid: number): number {
  const status = readFileSync(`/proc/${pid}/status`, 'latin1')
  return Number(/VmRSS:\s+(\d+)/.exec(status)?.[1]) / 1_024
}

function readTicks(pid: number): number {
  const fields = read(`/proc/${pid}/stat`).split(') ')[1]?.split(' ') ?? []
  return Number(fields[11] ?? 0) + Number(fields[12] ?? 0)
}

/** What a file says; nothing when its process or thread has just ended. */
function read(path: string): string {
  return orNothing('', () => readFileSync(path, 'latin1'))
}

function list(path: string): string[] {
  return orNothing([], () => readdirSync(path))
}

function orNothing<Value>(nothing: Value, look: () => Value): Value {
  try {
    return look()
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    if (code === 'ENOENT' || code === 'ESRCH') return nothing
    throw error
  }
}
