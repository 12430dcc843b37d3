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
import { seed, serveInPlace, serveOurs, serveUsual, stopSystems } from '../systems.ts'

const slowDelays = [5, 20]
const delays = [0, ...slowDelays]
const plans = { short: { rounds: 2, sliceMs: 500 }, full: { rounds: 4, sliceMs: 700 } }
/** Fewer than elsewhere: each takes the usual a sync. Ours gets more, so that it has seen what its disk is like. */
const stored = 200
const seeds: Record<Who, number> = { ours: 1_000, 'in place': 1_000, usual: stored }
/** A create waits for the batch before it and for its own; now and then a checkpoint syncs twice in between. */
const maxSyncsToWait = 4
/** What the p99 of gets is without any sync: beside a delay that is not longer than this, it shows nothing. */
const quickestGetMs = 10

/** Ours; ours as it would be if it committed on the event loop also on a slow disk; the usual. */
type Who = 'ours' | 'in place' | 'usual'
const titles: Record<Who, string> = {
  ours: 'Plant Store',
  'in place': 'Plant Store, in place',
  usual: 'the usual',
}

interface Case {
  readonly who: Who
  readonly syncMs: number
  readonly subject: Subject
}

interface Measured {
  readonly who: Who
  readonly syncMs: number
  readonly create: Series
  readonly mixed: Series
}

interface Slow {
  readonly engine: string
  readonly found: readonly Measured[]
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

async function drive(lab: Lab, engine: string, cases: readonly Case[]): Promise<Slow> {
  const plan = { connections: 64, ...plans[lab.form] }
  const subjects = cases.map(({ subject }) => subject)
  for (const { who, subject } of cases) {
    lab.progress(`slow disks: the first plants, ${subject.name}`)
    await seed(lab, subject, seeds[who])
  }
  const create = await alternate(lab, subjects, { workload: 'create', ...plan })
  const mixed = await alternate(lab, subjects, { workload: 'mixed', ...plan })
  await stopSystems(lab, subjects)
  const found = cases.map(({ who, syncMs }, index) => ({
    who,
    syncMs,
    create: create[index] as Series,
    mixed: mixed[index] as Series,
  }))
  return { engine, found }
}

/** Ours, ours in place where that is another way, and the usual, for each delay. */
async function startOnSqlite(lab: Lab, shim: Extract<Shim, { skip: false }>): Promise<Case[]> {
  const cases: Case[] = []
  for (const syncMs of delays) {
    const folder = join(lab.folder, `slow-${syncMs}`)
    mkdirSync(folder)
    const env = syncMs > 0 ? shim.toEnv({ folder, syncMs }) : {}
    const toUrl = (name: string) => `sqlite:${join(folder, `${name}.db`)}`
    cases.push(toCase('ours', syncMs, await serveOurs(lab, toUrl('ours'), { env })))
    if (syncMs > 0) {
      const inPlace = await serveInPlace(lab, toUrl('in-place'), { env })
      cases.push(toCase('in place', syncMs, inPlace))
    }
    cases.push(toCase('usual', syncMs, await serveUsual(lab, toUrl('usual'), { env })))
  }
  return cases
}

async function startOnPostgres(lab: Lab): Promise<Case[]> {
  const cases: Case[] = []
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
    cases.push(toCase('ours', syncMs, await serveOurs(lab, server.toUrl('ours'))))
    cases.push(toCase('usual', syncMs, await serveUsual(lab, server.toUrl('usual'))))
  }
  return cases
}

function toCase(who: Who, syncMs: number, served: Served): Case {
  const name = `${titles[who]}, +${syncMs} ms`
  const requests = toRequests(stored, who === 'usual' ? 201 : 200)
  return { who, syncMs, subject: { name, served, pids: [served.pid], requests } }
}

function find({ found }: Slow, who: Who, syncMs: number): Measured {
  return found.find((one) => one.who === who && one.syncMs === syncMs) as Measured
}

/** The share of the creates that is left of those without a delay. */
function kept(slow: Slow, { who, create }: Measured): number {
  const quick = find(slow, who === 'usual' ? 'usual' : 'ours', 0)
  return ratio(create, quick.create, 'perSecond')
}

function describe(slow: Slow): string {
  const rows = slow.found.map((one) => [
    one.create.system,
    `${toText(median(one.create.rounds.perSecond))} (${kept(slow, one).toFixed(2)})`,
    toText(worst(one.create.rounds.p99Ms)),
    toText(median(one.mixed.rounds.perSecond)),
    toText(worst(one.mixed.readP99Ms)),
  ])
  const head = [
    'each sync takes longer by',
    'creates/s (of those without)',
    'p99 ms, worst slice',
    '80 % get, 20 % create: requests/s',
    'p99 ms of the gets, worst slice',
  ]
  return `### ${slow.engine}, 64 connections\n\n${toTable(head, rows)}`
}

function toTargets(slow: Slow): Target[] {
  const quickMs = worst(find(slow, 'ours', 0).create.rounds.p99Ms)
  return slowDelays.flatMap((syncMs) => {
    const ours = find(slow, 'ours', syncMs)
    const usual = find(slow, 'usual', syncMs)
    const title = `${slow.engine}, syncs ${syncMs} ms slower`
    const readMs = worst(ours.mixed.readP99Ms)
    return [
      {
        title: `${title}: creates/s kept, ours / usual`,
        value: kept(slow, ours) / kept(slow, usual),
        bound: { least: 1 },
      },
      {
        title: `${title}: p99 of gets beside creates, ours / usual`,
        value: readMs / worst(usual.mixed.readP99Ms),
        bound: { most: 1 },
      },
      {
        title: `${title}: p99 of creates`,
        value: worst(ours.create.rounds.p99Ms),
        bound: { most: Math.ceil(quickMs) + maxSyncsToWait * syncMs },
        unit: ' ms',
      },
      ...(syncMs > quickestGetMs ? [toReadTarget(title, readMs, syncMs)] : []),
    ]
  })
}

/** A get that takes less than a sync did not wait for one. */
function toReadTarget(title: string, readMs: number, syncMs: number): Target {
  return {
    title: `${title}: p99 of gets beside creates`,
    value: readMs,
    bound: { most: syncMs },
    unit: ' ms',
  }
}

function worst(values: readonly number[]): number {
  return quantile(values, 1)
}
