/** Cost of a request in a large store, next to a small one. */
import { join } from 'node:path'
import { describeSpread, median, ratio } from '../figures.ts'
import type { Lab } from '../lab.ts'
import { operations, seedCount, toRequests } from '../requests.ts'
import { type Findings, type Section, type Target, toTable, toText } from '../section.ts'
import { servePlantStore } from '../serve.ts'
import { alternate, type Series, type Subject, warmUp } from '../slices.ts'
import { fillStore } from '../stores.ts'
import { stopSystems } from '../systems.ts'

const connections = 64
const plans = {
  short: { large: 1_000_000, rounds: 14, warmMs: 1_500 },
  full: { large: 10_000_000, rounds: 40, warmMs: 3_000 },
}
const maxRatio = 1.15

/** The series of one engine and operation: the small store, and the large one. */
interface Growth {
  readonly engine: string
  readonly operation: string
  readonly series: readonly [Series, Series]
}

export const growth: Section = { name: 'growth', measure }

async function measure(lab: Lab): Promise<Findings> {
  const { large } = plans[lab.form]
  const sizes = [seedCount, large]
  const toUrl = async (size: number) => `sqlite:${join(lab.folder, `${size}.db`)}`
  const found = [
    ...(await measureEngine(lab, 'SQLite', sizes, toUrl)),
    ...(await measureEngine(lab, 'PostgreSQL', sizes, (size) => lab.newDatabase(`of_${size}`))),
  ]
  const [small, many] = sizes.map((size) => size.toLocaleString('en'))
  const rows = found.map(({ engine, operation, series: [first, last] }) => [
    `${operation}, ${engine}`,
    toText(median(first.rounds.cpuUs)),
    toText(median(last.rounds.cpuUs)),
    ratio(last, first, 'cpuUs').toFixed(2),
  ])
  const head = [`CPU µs, ${connections} connections`, `${small} plants`, `${many}`, 'ratio']
  return {
    title: 'Growth',
    text: `${describeSpread(found.flatMap(({ series }) => series))}\n\n${toTable(head, rows)}`,
    values: found,
    targets: found.map(
      ({ engine, operation, series: [first, last] }): Target => ({
        title: `CPU of a ${operation} among ${many} plants / ${small}, ${engine}`,
        value: ratio(last, first, 'cpuUs'),
        bound: { max: maxRatio },
      }),
    ),
  }
}

async function measureEngine(
  lab: Lab,
  engine: string,
  sizes: readonly number[],
  newUrl: (size: number) => Promise<string>,
): Promise<Growth[]> {
  const { rounds, warmMs } = plans[lab.form]
  const postgres = engine === 'PostgreSQL' ? [Number((await lab.findPostgres()).process.pid)] : []
  const subjects: Subject[] = []
  for (const size of sizes) {
    const url = await newUrl(size)
    await fillStore(url, size, lab.progress)
    const server = await servePlantStore(lab, url)
    const pids = [server.pid, ...postgres]
    subjects.push({ name: `${size}`, server, pids, requests: toRequests(size) })
  }
  const found: Growth[] = []
  for (const operation of operations) {
    // Each workload warms up anew: the first access to a page costs each connection extra.
    await warmUp(lab, subjects, { workload: operation, connections, forMs: warmMs })
    const plan = { workload: operation, connections, rounds }
    const [first, last] = await alternate(lab, subjects, plan)
    if (first && last) found.push({ engine, operation, series: [first, last] })
  }
  await stopSystems(lab, subjects)
  return found
}
