/** What a slow disk does to writes and to reads: each sync takes some milliseconds longer, by a shim below the process. */
import { mkdirSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { compileShim, type Shim } from '../../test/faults/shim.ts'
import { newCluster, query } from '../../test/support/postgres.ts'
import { median, quantile, ratio } from '../figures.ts'
import type { Lab, Served } from '../lab.ts'
import { toRequests } from '../requests.ts'
import { type Findings, type Section, type Target, toTable, toText } from '../section.ts'
import { alternate, type Series, type Subject } from '../slices.ts'
import { seed, serveOurs, serveUsual, stopSystems } from '../systems.ts'

const delays = [0, 5, 20]
const plans = { short: { rounds: 2, sliceMs: 500 }, full: { rounds: 4, sliceMs: 700 } }
/** Fewer than elsewhere: each takes the usual a sync. */
const stored = 200
/** A create waits for the batch before it and for its own; now and then a checkpoint syncs twice in between. */
const mostSyncsToWait = 4

interface Slow {
  readonly engine: string
  readonly create: readonly Series[]
  readonly mixed: readonly Series[]
}

export const slowDisk: Section = { name: 'slow-disk', measure }

async function measure(lab: Lab): Promise<Findings> {
  const title = 'Slow disks'
  const shim = compileShim(lab.folder)
  if (shim.toEnv === undefined) return { title, text: shim.skip, values: [], targets: [] }
  const found = [
    await drive(lab, 'SQLite', await startOnSqlite(lab, shim)),
    await drive(lab, 'PostgreSQL', await startOnPostgres(lab)),
  ]
  return {
    title,
    text: found.map(describe).join('\n\n'),
    values: found,
    targets: found.flatMap(toTargets),
  }
}

async function drive(lab: Lab, engine: string, subjects: Subject[]): Promise<Slow> {
  const plan = { connections: 64, ...plans[lab.form] }
  for (const subject of subjects) {
    lab.progress(`slow disks: the first plants, ${subject.name}`)
    await seed(lab, subject, stored)
  }
  const create = await alternate(lab, subjects, { workload: 'create', ...plan })
  const mixed = await alternate(lab, subjects, { workload: 'mixed', ...plan })
  await stopSystems(lab, subjects)
  return { engine, create, mixed }
}

/** Ours and the usual, in turn, for each delay. */
async function startOnSqlite(lab: Lab, shim: Extract<Shim, { skip: false }>): Promise<Subject[]> {
  const subjects: Subject[] = []
  for (const syncMs of delays) {
    const folder = join(lab.folder, `slow-${syncMs}`)
    mkdirSync(folder)
    const env = syncMs > 0 ? shim.toEnv({ folder, syncMs }) : {}
    const ours = await serveOurs(lab, `sqlite:${join(folder, 'ours.db')}`, { env })
    const usual = await serveUsual(lab, `sqlite:${join(folder, 'usual.db')}`, { env })
    subjects.push(...toSubjects([ours, usual], syncMs))
  }
  return subjects
}

async function startOnPostgres(lab: Lab): Promise<Subject[]> {
  const subjects: Subject[] = []
  for (const syncMs of delays) {
    const cluster = await newCluster()
    // In the folder of the cluster, which the user of the server can read.
    const shim = compileShim(dirname(cluster))
    // A server opens its files by paths from its data folder on.
    const env = syncMs > 0 ? (shim.toEnv?.({ folder: 'pg_wal/', syncMs }) ?? {}) : {}
    const server = await lab.startPostgres(cluster, env)
    for (const name of ['ours', 'usual']) {
      await query(server.toUrl('postgres'), `CREATE DATABASE ${name}`)
    }
    const ours = await serveOurs(lab, server.toUrl('ours'))
    const usual = await serveUsual(lab, server.toUrl('usual'))
    subjects.push(...toSubjects([ours, usual], syncMs))
  }
  return subjects
}

function toSubjects([ours, usual]: [Served, Served], syncMs: number): Subject[] {
  return [
    { name: `Plant Store, +${syncMs} ms`, served: ours, status: 200 },
    { name: `the usual, +${syncMs} ms`, served: usual, status: 201 },
  ].map(({ name, served, status }) => ({
    name,
    served,
    pids: [served.pid],
    requests: toRequests(stored, status),
  }))
}

function describe({ engine, create, mixed }: Slow): string {
  const rows = create.map((series, index) => {
    const both = mixed[index] as Series
    const kept = ratio(series, create[index % 2] as Series, 'perSecond')
    return [
      series.system,
      `${toText(median(series.rounds.perSecond))} (${kept.toFixed(2)})`,
      toText(worst(series.rounds.p99Ms)),
      toText(median(both.rounds.perSecond)),
      toText(worst(both.readP99Ms)),
    ]
  })
  const head = [
    'each sync takes longer by',
    'creates/s (of those without)',
    'p99 ms, worst slice',
    '80 % get, 20 % create: requests/s',
    'p99 ms of the gets, worst slice',
  ]
  return `### ${engine}, 64 connections\n\n${toTable(head, rows)}`
}

function toTargets({ engine, create, mixed }: Slow): Target[] {
  return delays.slice(1).flatMap((syncMs, index) => {
    const at = 2 * (index + 1)
    const [oursFast, usualFast] = create as [Series, Series]
    const ours = create[at] as Series
    const usual = create[at + 1] as Series
    const kept = ratio(ours, oursFast, 'perSecond') / ratio(usual, usualFast, 'perSecond')
    const reads = [mixed[at], mixed[at + 1]].map((series) => worst(series?.readP99Ms ?? []))
    const title = `${engine}, syncs ${syncMs} ms slower`
    const most = Math.ceil(worst(oursFast.rounds.p99Ms)) + mostSyncsToWait * syncMs
    return [
      { title: `${title}: creates/s kept, ours / usual`, value: kept, bound: { least: 1 } },
      {
        title: `${title}: p99 of gets beside creates, ours / usual`,
        value: (reads[0] ?? 0) / (reads[1] ?? 0),
        bound: { most: 1 },
      },
      {
        title: `${title}: p99 of creates`,
        value: worst(ours.rounds.p99Ms),
        bound: { most },
        unit: ' ms',
      },
    ]
  })
}

function worst(values: readonly number[]): number {
  return quantile(values, 1)
}
