import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { killAfterTest, programEnv } from '../../support/child.ts'
import { openSqliteStore } from '../../support/stores.ts'
import type { Carefulness } from './careless-stores.ts'
import type { Job, Jobs, Report, Told } from './faulty-writer.ts'
import type { Random } from './random.ts'
import { recover } from './recovery.ts'
import { type Fault, newQuickFolder, type Shim } from './shim.ts'
import { type Attempt, judge, type Outcome } from './writers.ts'

/** The sums over all faults. */
export interface DiskVerdict {
  /** How many faults have struck. */
  faults: number
  acknowledged: number
  refused: number
  unknown: number
  lost: number
  /** Stored, though it was refused or never sent. */
  invented: number
  wrong: number
  damaged: number
  readFailures: number
  /** Stores that do not write again after the fault. */
  stuck: number
  /** Answers that do not tell whether the plant is stored. */
  unexpected: number
  first: string | undefined
}

const writer = fileURLToPath(new URL('faulty-writer.ts', import.meta.url))
const jobsPerProcess = 40
/** About how many operations of each kind a job makes, so that most faults strike. */
const operations: Record<Fault['kind'], Partial<Record<Fault['suffix'], number>>> = {
  write: { '': 160, '-wal': 120, '.db': 40, '-shm': 8 },
  fsync: { '': 24, '-wal': 20, '.db': 8 },
  truncate: { '': 4, '-shm': 1 },
}

function chooseFault(random: Random): Fault {
  const pick = <Value>(values: readonly Value[]) => values[random.below(values.length)] as Value
  const kind = pick(['write', 'write', 'write', 'fsync', 'fsync', 'truncate'] as const)
  const suffix = pick(Object.keys(operations[kind]) as Fault['suffix'][])
  const number = 1 + random.below(operations[kind][suffix] ?? 1)
  return {
    kind,
    number,
    suffix,
    error: pick(['EIO', 'ENOSPC']),
    times: pick(['once', 'once', 'on']),
  }
}

function chooseJob(folder: string, random: Random): Job {
  const fault = chooseFault(random)
  const isOfOpening = fault.kind === 'truncate' || fault.suffix === '-shm' || random.isLikely(0.15)
  return { folder, fault, from: isOfOpening ? 'opening' : 'writing' }
}

/** Lets stores meet faults until this many have struck, kills them, and judges what is left. */
export async function strike(
  shim: Shim,
  carefulness: Carefulness,
  faults: number,
  random: Random,
): Promise<DiskVerdict> {
  const verdict: DiskVerdict = {
    faults: 0,
    acknowledged: 0,
    refused: 0,
    unknown: 0,
    lost: 0,
    invented: 0,
    wrong: 0,
    damaged: 0,
    readFailures: 0,
    stuck: 0,
    unexpected: 0,
    first: undefined,
  }
  while (verdict.faults < faults) {
    const folder = newQuickFolder()
    const count = Math.min(jobsPerProcess, 5 + faults - verdict.faults)
    const jobs = Array.from({ length: count }, (_, index) =>
      chooseJob(join(folder, `job-${index}`), random),
    )
    const reports = await runJobs(shim, folder, carefulness, jobs)
    if (!reports.some(({ hasStruck }) => hasStruck)) throw new Error('no fault of the shim struck')
    for (const [index, report] of reports.entries()) {
      if (report.hasStruck) await add(verdict, report, jobs[index] as Job)
    }
    rmSync(folder, { recursive: true })
  }
  return verdict
}

async function runJobs(
  { toEnv }: Shim,
  folder: string,
  carefulness: Carefulness,
  jobs: readonly Job[],
): Promise<Report[]> {
  if (toEnv === undefined) throw new Error('there is no shim')
  const template = join(folder, 'template')
  await openSqliteStore(join(template, 'plants.db')).close()
  const strikes = join(folder, 'strikes')
  writeFileSync(strikes, '')
  const all: Jobs = { template, strikes, carefulness, jobs }
  writeFileSync(join(folder, 'jobs'), JSON.stringify(all))
  const child = spawn(process.execPath, [writer, join(folder, 'jobs')], {
    env: { ...programEnv, ...toEnv({ folder: join(folder, 'job-'), strikes }) },
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  killAfterTest(child)
  const exited = once(child, 'exit')
  const reports: Report[] = []
  for await (const line of createInterface({ input: child.stdout })) {
    if (line === 'done') break
    reports.push(JSON.parse(line))
  }
  child.kill('SIGKILL')
  await exited
  if (reports.length !== jobs.length) throw new Error(`${reports.length} of ${jobs.length} jobs`)
  return reports
}

async function add(verdict: DiskVerdict, report: Report, { fault }: Job): Promise<void> {
  const { stored, damage } = await recover(join(report.folder, 'plants.db'))
  const attempts = report.told.map(toAttempt)
  const { lost, invented, wrong } = judge(attempts, stored)
  const count = (outcome: Outcome) => attempts.filter((one) => one.outcome === outcome).length
  const unexpected = report.told.filter(({ answer }) => !(answer in outcomes))
  verdict.faults++
  verdict.acknowledged += count('ok')
  verdict.refused += count('refused')
  verdict.unknown += count('unknown')
  verdict.lost += lost
  verdict.invented += invented
  verdict.wrong += wrong
  verdict.damaged += damage === undefined ? 0 : 1
  verdict.readFailures += report.readFailures.length
  verdict.stuck += report.isWell ? 0 : 1
  verdict.unexpected += unexpected.length
  const isWrong = lost + invented + wrong + report.readFailures.length + unexpected.length > 0
  if (!isWrong && report.isWell && damage === undefined) return
  const failures = report.told.filter(({ answer }) => answer !== 'ok').map(toShort)
  verdict.first ??= JSON.stringify({ fault, damage, ...report, told: failures })
}

const outcomes: Record<string | number, Outcome> = {
  ok: 'ok',
  50300: 'refused',
  50301: 'refused',
  50400: 'unknown',
  50700: 'refused',
}

function toAttempt({ id, name, answer }: Told): Attempt {
  return { id: BigInt(id), name, outcome: outcomes[answer] ?? 'unknown' }
}

function toShort({ id, answer }: Told): string {
  return `${id} ${answer}`
}
