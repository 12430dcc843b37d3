/**
 * Compares this checkout with another one: CPU time per request and throughput of create, get and
 * list over 64 connections. Both services run at the same time, on the same Node.js unless another
 * one is named, and are driven in turn in short slices. About two minutes for 60 rounds.
 *
 *   npx node bench/compare.ts --before <checkout> [--rounds 60] [--engine sqlite|postgres]
 *     [--after-env NAME=value]... [--workload create|get|list]... [--before-node <program>]
 */
import { existsSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { parseArgs } from 'node:util'
import { requireProc } from './cpu.ts'
import { isGeneratorBound, median, quantile, toRatios } from './figures.ts'
import { type Lab, openLab } from './lab.ts'
import { seedCount, token, toRequests } from './requests.ts'
import { toTable, toText } from './section.ts'
import { alternate, type Measure, type Series, type Subject, warmUp } from './slices.ts'
import { seed, stopSystems } from './systems.ts'

const sides = ['before', 'after'] as const
const workloads = ['create', 'get', 'list'] as const
const connections = 64
/** V8 compiles the code that all workloads share for 20,000 requests and more, however slow. */
const warmUps = { create: { requests: 30_000 }, get: { forMs: 300 }, list: { forMs: 300 } }
/** Two processes of one program differ by some per cent, so each is started this often. */
const starts = 6
const maxRounds = 1_000
/** With more than this share of the cores in use elsewhere, ratios vary by several per cent. */
const maxOtherShare = 0.1

type Side = (typeof sides)[number]

interface Options {
  readonly folders: Readonly<Record<Side, string>>
  readonly rounds: number
  readonly engine: string
  readonly workloads: readonly (typeof workloads)[number][]
  /** Settings of this checkout alone, which the other may not know. */
  readonly afterEnv: Readonly<Record<string, string>>
  /** The Node.js that the other checkout runs on. */
  readonly beforeNode: string
}

/** One workload during one start: the same rounds of both checkouts. */
interface Pair {
  readonly workload: (typeof workloads)[number]
  readonly before: Series
  readonly after: Series
}

const options = readOptions()
requireProc()
const lab = openLab('short', showProgress)
const pairs: Pair[] = []
try {
  for (let start = 0; start < starts; start++) pairs.push(...(await measureStart(lab, start)))
} finally {
  await lab.close()
  showProgress('')
}
console.log(describe(pairs))
process.exit()

function readOptions(): Options {
  const values = parseArguments()
  const rounds = Number(values.rounds)
  const folders = { before: resolve(values.before ?? ''), after: join(import.meta.dirname, '..') }
  if (values.before === undefined) refuse('--before takes the folder of the other checkout.')
  for (const needed of ['bin/plant-store.js', 'node_modules']) {
    if (!existsSync(join(folders.before, needed))) refuse(`${folders.before} has no ${needed}.`)
  }
  if (!Number.isInteger(rounds) || rounds < starts || rounds > maxRounds) {
    refuse(`--rounds takes a whole number from ${starts} to ${maxRounds}, not ${values.rounds}.`)
  }
  if (values.engine !== 'sqlite' && values.engine !== 'postgres') {
    refuse(`--engine takes sqlite or postgres, not ${values.engine}.`)
  }
  const wanted: readonly string[] = values.workload ?? workloads
  const chosen = workloads.filter((name) => wanted.includes(name))
  if (chosen.length < wanted.length) refuse(`--workload takes ${workloads.join(', ')}, each once.`)
  const afterEnv = Object.fromEntries(values['after-env'].map(toSetting))
  const beforeNode = values['before-node']
  return { folders, rounds, engine: values.engine, workloads: chosen, afterEnv, beforeNode }
}

function parseArguments() {
  const known = {
    before: { type: 'string' },
    rounds: { type: 'string', default: '60' },
    engine: { type: 'string', default: 'sqlite' },
    workload: { type: 'string', multiple: true },
    'after-env': { type: 'string', multiple: true, default: [] as string[] },
    'before-node': { type: 'string', default: process.execPath },
  } as const
  try {
    return parseArgs({ options: known }).values
  } catch (error) {
    return refuse((error as Error).message)
  }
}

function toSetting(text: string): [string, string] {
  const [name = '', value] = text.split(/=(.*)/s)
  return value === undefined ? refuse('--after-env takes NAME=value.') : [name, value]
}

function refuse(reason: string): never {
  console.error(reason)
  process.exit(1)
}

/** Starts both checkouts on new stores, and measures every workload. */
async function measureStart(lab: Lab, start: number): Promise<Pair[]> {
  const subjects: Subject[] = []
  // Each is the first to start as often as the other: the first may be some per cent slower.
  for (const side of start % 2 === 0 ? sides : sides.toReversed()) {
    subjects.push(await startSubject(lab, side, `${side}_${start}`))
  }
  const found: Pair[] = []
  for (const workload of options.workloads) {
    await warmUp(lab, subjects, { workload, connections, ...warmUps[workload] })
    const rounds = Math.ceil(options.rounds / starts)
    const series = await alternate(lab, subjects, { workload, connections, rounds })
    const [before, after] = sides.map((side) => series.find(({ system }) => system === side))
    if (before && after) found.push({ workload, before, after })
  }
  await stopSystems(lab, subjects)
  return found
}

async function startSubject(lab: Lab, name: Side, store: string): Promise<Subject> {
  const isSqlite = options.engine === 'sqlite'
  const url = isSqlite ? `sqlite:${join(lab.folder, `${store}.db`)}` : await lab.newDatabase(store)
  const args = [join(options.folders[name], 'bin', 'plant-store.js'), 'serve']
  const own = name === 'after' ? options.afterEnv : {}
  const env = { DATABASE_URL: url, PLANT_STORE_TOKEN: token, ...own }
  const program = name === 'before' ? options.beforeNode : process.execPath
  const server = await lab.serve({ args, env, program })
  const database = isSqlite ? [] : [Number((await lab.findPostgres()).process.pid)]
  const pids = [server.pid, ...database]
  const subject = { name, server, pids, requests: toRequests(seedCount, 200) }
  await seed(lab, subject)
  return subject
}

function describe(all: readonly Pair[]): string {
  const head = [
    options.engine,
    'CPU µs before',
    'after',
    'CPU ratio',
    'rounds',
    'starts',
    'throughput ratio',
    'rounds',
    'starts',
  ]
  const rows = options.workloads.map((name) => describeWorkload(name, all))
  const shares = all.flatMap(({ before, after }) => [...before.otherShare, ...after.otherShare])
  const busy = median(shares)
  const warning = busy > maxOtherShare ? ' Too many for an exact result: run this again.' : ''
  return [
    `Before: ${options.folders.before}. After: ${options.folders.after}.`,
    toTable(head, rows),
    'A ratio is the median over all rounds of after / before. Beside it are the quartiles of the',
    'rounds, and the lowest and highest median of a start.',
    `Other processes used ${(busy * 100).toFixed(0)} % of the cores.${warning}`,
  ].join('\n')
}

function describeWorkload(name: string, all: readonly Pair[]): string[] {
  const own = all.filter(({ workload }) => workload === name)
  const [cpu, ...cpuSpread] = describeRatio(own, 'cpuUs')
  const [rate, ...rateSpread] = describeRatio(own, 'perSecond')
  const isBound = own.some(
    ({ before, after }) => isGeneratorBound(before) || isGeneratorBound(after),
  )
  return [
    name,
    toText(median(own.flatMap(({ before }) => before.rounds.cpuUs))),
    toText(median(own.flatMap(({ after }) => after.rounds.cpuUs))),
    cpu,
    ...cpuSpread,
    isBound ? 'generator-bound' : rate,
    ...rateSpread,
  ]
}

/** The ratio of a measure, its quartiles over the rounds, and its range over the starts. */
function describeRatio(pairs: readonly Pair[], measure: Measure): [string, string, string] {
  const ratios = pairs.map(({ before, after }) => toRatios(after, before, measure))
  const medians = ratios.map(median)
  return [
    median(ratios.flat()).toFixed(3),
    describeRange(quantile(ratios.flat(), 0.25), quantile(ratios.flat(), 0.75)),
    describeRange(Math.min(...medians), Math.max(...medians)),
  ]
}

function describeRange(low: number, high: number): string {
  return `${low.toFixed(2)} to ${high.toFixed(2)}`
}

function showProgress(text: string): void {
  if (process.stderr.isTTY) process.stderr.write(`\r\x1b[K${text}`)
}
