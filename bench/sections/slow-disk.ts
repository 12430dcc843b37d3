/** Effect of a slow disk on writes and reads: a shim below the process delays each sync. */
import { mkdirSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { compileShim, type Shim } from '../../test/faults/lab/shim.ts'
import { newCluster, query } from '../../test/support/postgres.ts'
import { median, quantile } from '../figures.ts'
import type { Lab } from '../lab.ts'
import { toRequests } from '../requests.ts'
import { type Findings, type Section, type Target, toTable, toText } from '../section.ts'
import { serveBaseline, servePlantStore } from '../serve.ts'
import { alternate, type Series, type Subject } from '../slices.ts'
import { kinds, type SystemName, seed, stopSystems } from '../systems.ts'

const delaysMs = [0, 5, 20]
const plans = { short: { rounds: 2, sliceMs: 500 }, full: { rounds: 4, sliceMs: 700 } }
/** Few, because each costs the baseline a sync. */
const readable = 200

interface Case extends Subject {
  readonly name: SystemName
  readonly syncMs: number
}

interface Measured {
  readonly name: SystemName
  readonly syncMs: number
  readonly create: Series
  readonly mixed: Series
}

export const slowDisk: Section = { name: 'slow-disk', measure }

async function measure(lab: Lab): Promise<Findings> {
  const title = 'Slow disks'
  const shim = compileShim(lab.folder)
  if (shim.toEnv === undefined) return { title, text: shim.skip, values: [], targets: [] }
  const found = [
    ...(await drive(lab, await startOnSqlite(lab, shim))),
    ...(await drive(lab, await startOnPostgres(lab))),
  ]
  const rows = found.map(({ name, syncMs, create, mixed }) => [
    `${kinds[name].title}, +${syncMs} ms`,
    toText(median(create.rounds.perSecond)),
    toText(worst(create.rounds.p99Ms)),
    toText(median(mixed.rounds.perSecond)),
    toText(worst(mixed.readP99Ms)),
  ])
  const head = ['delay of each sync', 'creates/s', 'p99 ms', 'mixed/s', 'p99 ms of gets']
  return {
    title,
    text: `64 connections; mixed is 80 % gets, 20 % creates; a p99 is that of the worst slice.

${toTable(head, rows)}`,
    values: found,
    targets: [
      ...toTargets(found, 'ours-sqlite', 'baseline-sqlite'),
      ...toTargets(found, 'ours-postgres', 'baseline-postgres'),
    ],
  }
}

async function drive(lab: Lab, cases: readonly Case[]): Promise<Measured[]> {
  const plan = { connections: 64, ...plans[lab.form] }
  for (const one of cases) {
    lab.progress(`slow disks: seeding ${one.name}`)
    await seed(lab, one, readable)
  }
  const create = await alternate(lab, cases, { workload: 'create', ...plan })
  const mixed = await alternate(lab, cases, { workload: 'mixed', ...plan })
  await stopSystems(lab, cases)
  return cases.map(({ name, syncMs }, index) => ({
    name,
    syncMs,
    create: create[index] as Series,
    mixed: mixed[index] as Series,
  }))
}

async function startOnSqlite(lab: Lab, shim: Extract<Shim, { skip: false }>): Promise<Case[]> {
  const cases: Case[] = []
  for (const syncMs of delaysMs) {
    const folder = join(lab.folder, `slow-${syncMs}`)
    mkdirSync(folder)
    const env = syncMs > 0 ? shim.toEnv({ folder, syncMs }) : {}
    const toUrl = (name: string) => `sqlite:${join(folder, `${name}.db`)}`
    const ours = await servePlantStore(lab, toUrl('ours'), { env })
    const baseline = await serveBaseline(lab, toUrl('baseline'), { env })
    cases.push(toCase('ours-sqlite', syncMs, ours), toCase('baseline-sqlite', syncMs, baseline))
  }
  return cases
}

async function startOnPostgres(lab: Lab): Promise<Case[]> {
  const cases: Case[] = []
  for (const syncMs of delaysMs) {
    const cluster = await newCluster()
    // The server's user must be able to read the shim, so it goes into the cluster's folder.
    const shim = compileShim(dirname(cluster))
    // The server opens its files by paths relative to its data folder.
    const env = syncMs > 0 ? (shim.toEnv?.({ folder: 'pg_wal/', syncMs }) ?? {}) : {}
    const server = await lab.startPostgres(cluster, env)
    for (const name of ['ours', 'baseline']) {
      await query(server.toUrl('postgres'), `CREATE DATABASE ${name}`)
    }
    const ours = await servePlantStore(lab, server.toUrl('ours'))
    const baseline = await serveBaseline(lab, server.toUrl('baseline'))
    cases.push(toCase('ours-postgres', syncMs, ours), toCase('baseline-postgres', syncMs, baseline))
  }
  return cases
}

function toCase(name: SystemName, syncMs: number, server: Case['server']): Case {
  const requests = toRequests(readable, name.startsWith('ours') ? 200 : 201)
  return { name, syncMs, server, pids: [server.pid], requests }
}

/** With each delay, Plant Store creates more than the baseline, and answers gets sooner. */
function toTargets(found: readonly Measured[], ours: SystemName, baseline: SystemName): Target[] {
  return delaysMs.slice(1).flatMap((syncMs) => {
    const [one, two] = [ours, baseline].map((name) =>
      found.find((measured) => measured.name === name && measured.syncMs === syncMs),
    )
    if (one === undefined || two === undefined) return []
    const rate = ({ create }: Measured) => median(create.rounds.perSecond)
    const readMs = ({ mixed }: Measured) => worst(mixed.readP99Ms)
    const pair = `syncs +${syncMs} ms: ${kinds[ours].title} / ${kinds[baseline].title}`
    return [
      { title: `creates/s, ${pair}`, value: rate(one) / rate(two), bound: { min: 1 } },
      { title: `p99 of gets, ${pair}`, value: readMs(one) / readMs(two), bound: { max: 1 } },
    ]
  })
}

function worst(values: readonly number[]): number {
  return quantile(values, 1)
}
