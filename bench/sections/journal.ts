/** What the journal costs a create: services with it and without it, driven in turn. */
import { isGeneratorBound, median, quantile, toRatios } from '../figures.ts'
import type { Lab } from '../lab.ts'
import { type Findings, type Section, type Target, toTable, toText } from '../section.ts'
import { servePlantStore, serveUnjournaled } from '../serve.ts'
import { alternate, type Measure, type Series, type Subject, warmUp } from '../slices.ts'
import { seed, startOnPostgres, startOnSqlite, stopSystems } from '../systems.ts'

const connections = 64
/** V8 compiles the code of creates for 20,000 requests and more. */
const warmRequests = 30_000
/** Two processes of one program differ by up to 5 %, so each is started many times. */
const plans = { short: { starts: 2, rounds: 25 }, full: { starts: 24, rounds: 12 } }
/** The differences are small: many short slices tell them better than few long ones. */
const sliceMs = 40
const engines = [
  { title: 'SQLite', start: startOnSqlite, maxCpu: 1.04, minThroughput: 0.96 },
  { title: 'PostgreSQL', start: startOnPostgres, maxCpu: 1.06, minThroughput: 0.94 },
]

const sides = ['on', 'off'] as const
const serve = { on: servePlantStore, off: serveUnjournaled }

/** The same rounds of one start. */
type Pair = Readonly<Record<(typeof sides)[number], Series>>

export const journal: Section = { name: 'journal', measure }

async function measure(lab: Lab): Promise<Findings> {
  const found = []
  for (const engine of engines) found.push({ ...engine, pairs: await measureEngine(lab, engine) })
  const head = ['', 'CPU µs on', 'off', 'CPU on / off', 'rounds', 'throughput on / off', 'rounds']
  return {
    title: 'The journal, on and off: creates over 64 connections',
    text: toTable(
      head,
      found.map(({ title, pairs }) => describe(title, pairs)),
    ),
    values: found.map(({ title, pairs }) => ({ title, pairs })),
    targets: found.flatMap(toTargets),
  }
}

async function measureEngine(lab: Lab, { start }: (typeof engines)[number]): Promise<Pair[]> {
  const { starts, rounds } = plans[lab.form]
  const pairs: Pair[] = []
  for (let count = 0; count < starts; count++) {
    const subjects: Subject[] = []
    // Each is the first to start as often as the other.
    for (const name of count % 2 === 0 ? sides : sides.toReversed()) {
      subjects.push({ name, ...(await start(lab, `journal_${name}_${count}`, serve[name], 200)) })
    }
    for (const subject of subjects) await seed(lab, subject)
    await warmUp(lab, subjects, { workload: 'create', connections, requests: warmRequests })
    const plan = { workload: 'create', connections, rounds, sliceMs } as const
    const series = await alternate(lab, subjects, plan)
    const [on, off] = sides.map((name) => series.find(({ system }) => system === name))
    if (on && off) pairs.push({ on, off })
    await stopSystems(lab, subjects)
  }
  return pairs
}

function describe(title: string, pairs: readonly Pair[]): string[] {
  const toCpu = (side: keyof Pair) => toText(median(pairs.flatMap((one) => one[side].rounds.cpuUs)))
  return [
    title,
    toCpu('on'),
    toCpu('off'),
    ...describeRatio(pairs, 'cpuUs'),
    ...describeRatio(pairs, 'perSecond'),
  ]
}

/** The median of the ratios, and their quartiles. */
function describeRatio(pairs: readonly Pair[], measure: Measure): string[] {
  const ratios = toAllRatios(pairs, measure)
  const [low, high] = [quantile(ratios, 0.25), quantile(ratios, 0.75)]
  return [median(ratios).toFixed(3), `${low.toFixed(2)} to ${high.toFixed(2)}`]
}

function toAllRatios(pairs: readonly Pair[], measure: Measure): number[] {
  return pairs.flatMap(({ on, off }) => toRatios(on, off, measure))
}

function toTargets(engine: (typeof engines)[number] & { pairs: readonly Pair[] }): Target[] {
  const { title, pairs, maxCpu, minThroughput } = engine
  const isBound = pairs.some(({ on, off }) => isGeneratorBound(on) || isGeneratorBound(off))
  return [
    {
      title: `create, CPU: ${title}, journal on / off`,
      value: median(toAllRatios(pairs, 'cpuUs')),
      bound: { max: maxCpu },
    },
    {
      title: `create, throughput: ${title}, journal on / off`,
      value: median(toAllRatios(pairs, 'perSecond')),
      bound: { min: minThroughput },
      ...(isBound && { refused: 'generator-bound' }),
    },
  ]
}
