/**
 * Compares this checkout with another one: CPU time per request and throughput, over 64 and 1,000
 * connections, and over 64 with 4 requests at once on each. Both services run at the same time, on
 * the same Node.js unless another one is named, and are driven in turn in short slices. About five
 * minutes for 60 rounds.
 *
 *   npx node bench/compare.ts --before <checkout> [--rounds 60] [--engine sqlite|postgres]
 *     [--load <connections>[x<requests at once>]]... [--workload create|large|get|list]...
 *     [--after-env NAME=value]... [--before-node <program>]
 */
import { existsSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { parseArgs } from 'node:util'
import { requireProc } from './cpu.ts'
import { isGeneratorBound, median, quantile, toRatios } from './figures.ts'
import { type Lab, openLab } from './lab.ts'
import { seedCount, token, toRequests } from './requests.ts'
import { toTable, toText } from './section.ts'
import { alternate, type Measure, type Plan, type Series, type Subject, warmUp } from './slices.ts'
import { seed, stopSystems } from './systems.ts'

const sides = ['before', 'after'] as const
const workloads = ['create', 'large', 'get', 'list'] as const
const usualLoads = ['64', '1000', '64x4']
const loadPattern = /^(\d+)(?:x(\d+))?$/
/** V8 keeps recompiling the code that all workloads share for 20,000 requests and more. */
const warmUps = { create: { requests: 30_000 }, other: { forMs: 300 } }
/** Two processes of one program differ by some per cent, so each is started this often. */
const starts = 6
/** With more than this share of the cores in use elsewhere, ratios vary by several per cent. */
const maxOtherShare = 0.1

type Side = (typeof sides)[number]
type Load = Pick<Plan, 'connections'> & { readonly pipelined: number; readonly name: string }

interface Options {
  readonly folders: Readonly<Record<Side, string>>
  readonly rounds: number
  readonly engine: string
  readonly workloads: readonly (typeof workloads)[number][]
  readonly loads: readonly Load[]
  /** Settings of this checkout alone, which the other may not know. */
  readonly afterEnv: Readonly<Record<string, string>>
  /** The Node.js that the other checkout runs on. */
  readonly beforeNode: string
}

/** One workload under one load during one start: the same rounds of both checkouts. */
interface Pair {
  readonly name: string
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
  if (!(rounds >= starts)) refuse(`--rounds takes a number from ${starts} on.`)
  if (values.engine !== 'sqlite' && values.engine !== 'postgres') {
    refuse(`--engine takes sqlite or postgres, not ${values.engine}.`)
  }
  const wanted: readonly string[] = values.workload ?? workloads
  const chosen = workloads.filter((name) => wanted.includes(name))
  if (chosen.length < wanted.length) refuse(`--workload takes ${workloads.join(', ')}, each once.`)
  const loads = values.load.map(toLoad)
  const afterEnv = Object.fromEntries(values['after-env'].map(toSetting))
  const beforeNode = values['before-node']
  const { engine } = values
  return { folders, rounds, engine, workloads: chosen, loads, afterEnv, beforeNode }
}

function parseArguments() {
  const known = {
    before: { type: 'string' },
    rounds: { type: 'string', default: '60' },
    engine: { type: 'string', default: 'sqlite' },
    workload: { type: 'string', multiple: true },
    load: { type: 'string', multiple: true, default: usualLoads },
    'after-env': { type: 'string', multiple: true, default: [] as string[] },
    'before-node': { type: 'string', default: process.execPath },
  } as const
  try {
    return parseArgs({ options: known }).values
  } catch (error) {
    return refuse((error as Error).message)
  }
}

function toLoad(name: string): Load {
  const [, connections, pipelined = '1'] = loadPattern.exec(name) ?? []
  if (connections === undefined) refuse('--load takes connections, as 64, or 64x4.')
  return { name, connections: Number(connections), pipelined: Number(pipelined) }
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
  const rounds = Math.ceil(options.rounds / starts)
  for (const [at, { name, ...load }] of options.loads.entries()) {
    for (const workload of options.workloads) {
      const warm = workload === 'create' && at === 0 ? warmUps.create : warmUps.other
      await warmUp(lab, subjects, { workload, ...load, ...warm })
      const series = await alternate(lab, subjects, { workload, rounds, ...load })
      const [before, after] = sides.map((side) => series.find(({ system }) => system === side))
      if (before && after) found.push({ name: `${workload}, ${name}`, before, after })
    }
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
  const subject = { name, server, pids, requests: toRequests(seedCount) }
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
  ]
  const names = new Set(all.map(({ name }) => name))
  const rows = [...names].map((name) => describeWorkload(name, all))
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
  const own = all.filter((one) => one.name === name)
  const [cpu, ...cpuSpread] = describeRatio(own, 'cpuUs')
  const [rate, rateSpread] = describeRatio(own, 'perSecond')
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
    rateSpread,
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
