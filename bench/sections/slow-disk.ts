/** Effect of a slow disk on writes and reads: a shim below the process delays each sync. */
import { mkdirSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { compileShim, type Shim } from '../../test/faults/lab/shim.ts'
import { newCluster, query } from '../../test/support/postgres.ts'
import { median, quantile, ratio } from '../figures.ts'
import type { Lab, Server } from '../lab.ts'
import { toRequests } from '../requests.ts'
import { type Findings, type Section, type Target, toTable, toText } from '../section.ts'
import { serveBaseline, servePlantStore } from '../serve.ts'
import { alternate, type Series, type Subject } from '../slices.ts'
import { seed, stopSystems } from '../systems.ts'

const slowDelays = [5, 20]
const delays = [0, ...slowDelays]
const plans = { short: { rounds: 2, sliceMs: 500 }, full: { rounds: 4, sliceMs: 700 } }
/** Few, because each costs the baseline a sync. */
const readable = 200
/** A create waits for the batch before its own; a checkpoint in between may sync twice. */
const maxSyncsToWait = 4
/** The p99 of gets without any delay: next to a shorter delay it proves nothing. */
const quickGetMs = 10

type Variant = 'ours' | 'baseline'
const titles: Record<Variant, string> = { ours: 'Plant Store', baseline: 'baseline' }

interface Case {
  readonly variant: Variant
  readonly syncMs: number
  readonly subject: Subject
}

interface Measured {
  readonly variant: Variant
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
  for (const { subject } of cases) {
    lab.progress(`slow disks: seeding ${subject.name}`)
    await seed(lab, subject, readable)
  }
  const create = await alternate(lab, subjects, { workload: 'create', ...plan })
  const mixed = await alternate(lab, subjects, { workload: 'mixed', ...plan })
  await stopSystems(lab, subjects)
  const found = cases.map(({ variant, syncMs }, index) => ({
    variant,
    syncMs,
    create: create[index] as Series,
    mixed: mixed[index] as Series,
  }))
  return { engine, found }
}

async function startOnSqlite(lab: Lab, shim: Extract<Shim, { skip: false }>): Promise<Case[]> {
  const cases: Case[] = []
  for (const syncMs of delays) {
    const folder = join(lab.folder, `slow-${syncMs}`)
    mkdirSync(folder)
    const env = syncMs > 0 ? shim.toEnv({ folder, syncMs }) : {}
    const toUrl = (name: string) => `sqlite:${join(folder, `${name}.db`)}`
    cases.push(toCase('ours', syncMs, await servePlantStore(lab, toUrl('ours'), { env })))
    cases.push(toCase('baseline', syncMs, await serveBaseline(lab, toUrl('baseline'), { env })))
  }
  return cases
}

async function startOnPostgres(lab: Lab): Promise<Case[]> {
  const cases: Case[] = []
  for (const syncMs of delays) {
    const cluster = await newCluster()
    // The server's user must be able to read the shim, so it goes into the cluster's folder.
    const shim = compileShim(dirname(cluster))
    // The server opens its files by paths relative to its data folder.
    const env = syncMs > 0 ? (shim.toEnv?.({ folder: 'pg_wal/', syncMs }) ?? {}) : {}
    const server = await lab.startPostgres(cluster, env)
    for (const name of ['ours', 'baseline']) {
      await query(server.toUrl('postgres'), `CREATE DATABASE ${name}`)
    }
    cases.push(toCase('ours', syncMs, await servePlantStore(lab, server.toUrl('ours'))))
    cases.push(toCase('baseline', syncMs, await serveBaseline(lab, server.toUrl('baseline'))))
  }
  return cases
}

function toCase(variant: Variant, syncMs: number, server: Server): Case {
  const name = `${titles[variant]}, +${syncMs} ms`
  const requests = toRequests(readable, variant === 'baseline' ? 201 : 200)
  return { variant, syncMs, subject: { name, server, pids: [server.pid], requests } }
}

function find({ found }: Slow, variant: Variant, syncMs: number): Measured {
  return found.find((one) => one.variant === variant && one.syncMs === syncMs) as Measured
}

/** The rate of creates, as a share of the rate without a delay. */
function toKeptShare(slow: Slow, { variant, create }: Measured): number {
  return ratio(create, find(slow, variant, 0).create, 'perSecond')
}

function describe(slow: Slow): string {
  const rows = slow.found.map((one) => [
    one.create.system,
    toText(median(one.create.rounds.perSecond)),
    toKeptShare(slow, one).toFixed(2),
    toText(worst(one.create.rounds.p99Ms)),
    toText(median(one.mixed.rounds.perSecond)),
    toText(worst(one.mixed.readP99Ms)),
  ])
  const head = ['delay per sync', 'creates/s', '/ +0 ms', 'p99 ms', 'mixed/s', 'p99 ms of gets']
  return `### ${slow.engine}, 64 connections; the p99 is that of the worst slice

${toTable(head, rows)}`
}

function toTargets(slow: Slow): Target[] {
  const quickMs = worst(find(slow, 'ours', 0).create.rounds.p99Ms)
  return slowDelays.flatMap((syncMs) => {
    const ours = find(slow, 'ours', syncMs)
    const baseline = find(slow, 'baseline', syncMs)
    const title = `${slow.engine}, syncs +${syncMs} ms`
    const readMs = worst(ours.mixed.readP99Ms)
    return [
      {
        title: `${title}, share of creates/s kept: Plant Store / baseline`,
        value: toKeptShare(slow, ours) / toKeptShare(slow, baseline),
        bound: { min: 1 },
      },
      {
        title: `${title}, p99 of gets among creates: Plant Store / baseline`,
        value: readMs / worst(baseline.mixed.readP99Ms),
        bound: { max: 1 },
      },
      {
        title: `${title}, p99 of creates`,
        value: worst(ours.create.rounds.p99Ms),
        bound: { max: Math.ceil(quickMs) + maxSyncsToWait * syncMs },
        unit: ' ms',
      },
      ...toReadTargets(slow, title, syncMs),
    ]
  })
}

/** On SQLite a get waits for syncs as a create does. On PostgreSQL it waits for none. */
function toReadTargets(slow: Slow, title: string, syncMs: number): Target[] {
  const readMs = (delayMs: number) => worst(find(slow, 'ours', delayMs).mixed.readP99Ms)
  const isLocal = slow.engine === 'SQLite'
  if (!isLocal && syncMs <= quickGetMs) return []
  const max = isLocal ? Math.ceil(readMs(0)) + maxSyncsToWait * syncMs : syncMs
  const name = `${title}, p99 of gets among creates`
  return [{ title: name, value: readMs(syncMs), bound: { max }, unit: ' ms' }]
}

function worst(values: readonly number[]): number {
  return quantile(values, 1)
}
