import assert from 'node:assert/strict'
import { once } from 'node:events'
import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { before, describe, it } from 'node:test'
import { isDeepStrictEqual } from 'node:util'
import { runProcess } from '../support/command.ts'
import { newFolder } from '../support/folder.ts'
import { findFreePort, newCluster, startServer } from '../support/postgres.ts'
import { releaseAfterTest } from '../support/release.ts'
import type { FeedEvent } from './lab/feed.ts'
import { countOutcomes } from './lab/history.ts'
import { database } from './lab/replication.ts'
import { scale } from './lab/scale.ts'
import { type Pace, type Site, soak } from './lab/soak.ts'
import {
  type Copy,
  cleanSoak,
  type Evidence,
  judgeSoak,
  type Sample,
  type SoakVerdict,
  toGrowth,
} from './lab/soak-judge.ts'

/** An hour in the long run: the database restarts every five minutes, a service dies every ten. */
const minutes = Number(process.env.SOAK_MINUTES ?? scale(0.08, 60))
const periods = Math.max(3, Math.round(minutes / 5))
const pace: Pace = {
  periods,
  periodMs: (minutes * 60_000) / periods,
  thinkMs: 100,
}

async function openSqliteSite(): Promise<Site> {
  const folder = newFolder()
  const database = `sqlite:${join(folder, 'plants.db')}`
  return {
    database,
    services: 1,
    async backUp() {
      const path = join(folder, 'backup.db')
      const env = { DATABASE_URL: database }
      const { exitCode, stderr } = await runProcess(['backup', path], { folder, env })
      assert.equal(exitCode, 0, stderr)
      const plants = readBackup(path)
      rmSync(path)
      return plants
    },
  }
}

function readBackup(path: string): Copy['plants'] {
  using db = new DatabaseSync(path, { readOnly: true, readBigInts: true })
  assert.deepEqual({ ...db.prepare('PRAGMA integrity_check').get() }, { integrity_check: 'ok' })
  const rows = db.prepare('SELECT id, name FROM plants').all()
  return new Map(rows.map(({ id, name }) => [id as bigint, String(name)]))
}

/** A server that restarts in good order and after a crash, in turn. */
async function openPostgresSite(): Promise<Site> {
  const folder = await newCluster()
  const port = await findFreePort()
  const start = async () => {
    const server = await startServer(folder, {}, { port })
    releaseAfterTest(server.stop)
    return server
  }
  let server = await start()
  let restarts = 0
  return {
    database: server.toUrl(database),
    services: 2,
    async restartDatabase() {
      const exited = once(server.process, 'exit')
      server.process.kill(restarts++ % 2 === 0 ? 'SIGINT' : 'SIGQUIT')
      await exited
      server = await start()
    },
  }
}

/** Evidence that something is wrong, made of evidence that all is well. */
type Spoil = (evidence: Evidence) => Evidence

const drop = <Item>(items: readonly Item[], index = 3) => items.toSpliced(index, 1)
const repeat = <Item>(items: readonly Item[], index = 3) =>
  items.toSpliced(index, 0, items[index] as Item)
const swap = <Item>(items: readonly Item[], index = 3) =>
  items.toSpliced(index, 2, items[index + 1] as Item, items[index] as Item)

/** Spoils what is read of a plant whose writes were all acknowledged. */
const spoilPlant =
  (spoil: (plant: Plant) => Plant[]): Spoil =>
  (evidence) => {
    const { state, history } = evidence
    const isSure = ([id]: Plant) =>
      history.attemptsById.get(id)?.every(({ outcome }) => outcome === 'ok')
    const sure = state.got.find(isSure)?.[0]
    const spoilAll = (plants: readonly Plant[]) =>
      plants.flatMap((plant) => (plant[0] === sure ? spoil(plant) : [plant]))
    const got = spoilAll(state.got)
    const walked = spoilAll(state.walked)
    const exported = spoilAll(state.exported)
    return { ...evidence, state: { ...state, got, walked, exported } }
  }
type Plant = Evidence['state']['got'][0]
const spoilCopies =
  (kind: Copy['kind'], spoil: (plants: Copy['plants']) => Copy['plants']): Spoil =>
  (evidence) => ({
    ...evidence,
    copies: evidence.copies.map((copy) =>
      copy.kind === kind ? { ...copy, plants: spoil(copy.plants) } : copy,
    ),
  })
const empty = () => new Map()

const spoilFeed =
  (spoil: (events: Evidence['feeds'][0]) => Evidence['feeds'][0]): Spoil =>
  (evidence) => ({
    ...evidence,
    feeds: [spoil(evidence.feeds[0] ?? []), ...drop(evidence.feeds, 0)],
  })

const spoilDeliveries =
  (spoil: (deliveries: Evidence['deliveries']) => Evidence['deliveries']): Spoil =>
  (evidence) => ({ ...evidence, deliveries: spoil(evidence.deliveries) })

const dropFirst = (deliveries: Evidence['deliveries']) =>
  deliveries.filter(({ id }) => id !== deliveries[0]?.id)

/** The same deliveries twice, before any fault. */
const toTwice = (deliveries: Evidence['deliveries']) =>
  [1, 2].flatMap((receivedAt) => deliveries.map((one) => ({ ...one, receivedAt })))

/** Exchanges the first arrivals of two changes to one plant. */
function misplace(deliveries: Evidence['deliveries']): Evidence['deliveries'] {
  const byPlant = Map.groupBy(deliveries, ({ plantId }) => plantId)
  const toIds = (own: Evidence['deliveries']) => [...new Set(own.map(({ id }) => id))]
  const [first, second] = [...byPlant.values()].map(toIds).find((ids) => ids.length > 1) ?? []
  const swapped = new Map([
    [first, second],
    [second, first],
  ])
  return deliveries.map((delivery) => ({
    ...delivery,
    id: swapped.get(delivery.id) ?? delivery.id,
  }))
}

const spoilLastLife =
  (spoil: (sample: Sample) => Sample): Spoil =>
  (evidence) => {
    const last = evidence.lives.findLast(({ slot }) => slot === 0)
    return {
      ...evidence,
      lives: evidence.lives.map((life) =>
        life === last ? { ...life, samples: life.samples.map(spoil) } : life,
      ),
    }
  }

const toLate = (event: FeedEvent) => ({ ...event, at: '9999-01-01T00:00:00Z' })

const lateUse =
  (status: number): Spoil =>
  (evidence) => ({
    ...evidence,
    uses: [...evidence.uses, { slot: 0, sentAt: evidence.revoked.at + 1_001, status }],
  })

const controls: [what: string, caughtAs: keyof SoakVerdict, spoil: Spoil][] = [
  ['a lost plant', 'lost', spoilPlant(() => [])],
  ['an invented plant', 'invented', spoilPlant((plant) => [plant, [2n ** 41n, 'x']])],
  ['a plant with another content', 'wrong', spoilPlant(([id]) => [[id, 'x']])],
  ['a gap of a follower', 'followers', spoilFeed(drop)],
  ['a repetition for a follower', 'followers', spoilFeed(repeat)],
  ['another order for a follower', 'followers', spoilFeed(swap)],
  ['a change that is not delivered', 'undelivered', spoilDeliveries(dropFirst)],
  [
    'a delivery that nobody caused',
    'forged',
    spoilDeliveries((all) => [...all, { id: 'x', plantId: 'x', receivedAt: 0 }]),
  ],
  ['a delivery before an earlier change', 'disordered', spoilDeliveries(misplace)],
  [
    'a delivery twice without a fault',
    'repeated',
    spoilDeliveries((all) => [...toTwice(all.slice(0, 1)), ...all.slice(1)]),
  ],
  [
    'too many deliveries twice after a fault',
    'repeated',
    spoilDeliveries((all) => [...all, ...all.map((one) => ({ ...one, receivedAt: Infinity }))]),
  ],
  ['an export without its plants', 'copied', spoilCopies('export', empty)],
  ['a use of a revoked token', 'admitted', lateUse(200)],
  [
    'an event for a revoked token',
    'admitted',
    (evidence) => ({ ...evidence, revokedFeeds: evidence.feeds.map((feed) => feed.map(toLate)) }),
  ],
  [
    'a service that never refuses a revoked token',
    'admitted',
    (evidence) => ({ ...evidence, uses: evidence.uses.filter(({ status }) => status !== 401) }),
  ],
  ['memory that grows', 'grown', spoilLastLife((all) => ({ ...all, rssMb: all.rssMb * 9 }))],
  [
    'descriptors that grow',
    'grown',
    spoilLastLife((all) => ({ ...all, descriptors: all.descriptors * 9 })),
  ],
]
const controlsOfMoments: typeof controls = [
  ['a backup without its plants', 'copied', spoilCopies('backup', empty)],
  [
    'an export that never was the store',
    'mixed',
    spoilCopies('export', (plants) => new Map([...plants, [2n ** 41n, 'x']])),
  ],
]

const sites = [
  {
    name: 'a service on SQLite',
    open: openSqliteSite,
    controls: [...controls, ...controlsOfMoments],
  },
  { name: 'two services on PostgreSQL', open: openPostgresSite, controls },
]

describe('with everything on, under load, kills and restarts,', () => {
  let all: readonly Evidence[]
  // All are judged after the last: a judge would hold up what the others still read.
  before(async () => {
    all = await Promise.all(sites.map(async ({ open }) => soak(await open(), pace)))
  })

  for (const [index, { name, controls }] of sites.entries()) {
    describe(name, () => {
      it(`keep all their promises for ${minutes} minutes`, (test) => {
        const evidence = all[index] as Evidence
        const { history, state, deliveries, faults, copies, lives } = evidence
        const verdict = judgeSoak(evidence)
        test.diagnostic(
          JSON.stringify({
            ...countOutcomes(history),
            events: state.events.length,
            twice: deliveries.length - state.events.length,
            faults: faults.length,
            copies: copies.length,
            ...verdict,
          }),
        )
        for (const growth of toGrowth(lives)) test.diagnostic(JSON.stringify(growth))
        const isClean = isDeepStrictEqual(verdict, cleanSoak)
        for (const log of isClean ? [] : evidence.logs) test.diagnostic(log)
        assert.deepEqual(verdict, cleanSoak)
      })

      for (const [what, caughtAs, spoil] of controls) {
        it(`are not acquitted of ${what} (control)`, () => {
          assert.ok(judgeSoak(spoil(all[index] as Evidence))[caughtAs] > 0)
        })
      }
    })
  }
})
