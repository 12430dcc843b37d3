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
type Plants = Evidence['state']['got']
type Delivery = Evidence['deliveries'][0]

/** Spoils one kind of evidence. */
const spoil =
  <Kind extends keyof Evidence>(
    kind: Kind,
    change: (found: Evidence[Kind], all: Evidence) => Evidence[Kind],
  ): Spoil =>
  (evidence) => ({ ...evidence, [kind]: change(evidence[kind], evidence) })

/** Spoils what is read of a plant whose writes were all acknowledged. */
const spoilPlant = (change: (plant: Plants[0]) => Plants) =>
  spoil('state', (state, { history }) => {
    const isSure = ([id]: Plants[0]) =>
      history.attemptsById.get(id)?.every(({ outcome }) => outcome === 'ok')
    const sure = state.got.find(isSure)?.[0]
    const changeAll = (plants: Plants) =>
      plants.flatMap((plant) => (plant[0] === sure ? change(plant) : [plant]))
    const { got, walked, exported } = state
    return {
      ...state,
      got: changeAll(got),
      walked: changeAll(walked),
      exported: changeAll(exported),
    }
  })

const spoilCopies = (kind: Copy['kind'], change: (plants: Copy['plants']) => Copy['plants']) =>
  spoil('copies', (copies) =>
    copies.map((copy) => (copy.kind === kind ? { ...copy, plants: change(copy.plants) } : copy)),
  )
const empty = () => new Map()
const invented = [2n ** 41n, 'x'] as const

/** Spoils the first follower. */
const spoilFeed = (change: (events: readonly FeedEvent[]) => readonly FeedEvent[]) =>
  spoil('feeds', ([first = [], ...others]) => [change(first), ...others])

/** Exchanges the first arrivals of two changes to one plant. */
function misplace(deliveries: readonly Delivery[]): Delivery[] {
  const byPlant = Map.groupBy(deliveries, ({ plantId }) => plantId)
  const toIds = (own: readonly Delivery[]) => [...new Set(own.map(({ id }) => id))]
  const [first = '', second = ''] =
    [...byPlant.values()].map(toIds).find((ids) => ids.length > 1) ?? []
  const swapped = new Map([
    [first, second],
    [second, first],
  ])
  return deliveries.map((one) => ({ ...one, id: swapped.get(one.id) ?? one.id }))
}

const spoilLastLife = (change: (sample: Sample) => Sample) =>
  spoil('lives', (lives) => {
    const last = lives.findLast(({ slot }) => slot === 0)
    return lives.map((life) =>
      life === last ? { ...life, samples: life.samples.map(change) } : life,
    )
  })

const controls: [what: string, caughtAs: keyof SoakVerdict, spoil: Spoil][] = [
  ['a lost plant', 'lost', spoilPlant(() => [])],
  ['an invented plant', 'invented', spoilPlant((plant) => [plant, invented])],
  ['a plant with another content', 'wrong', spoilPlant(([id]) => [[id, 'x']])],
  ['a gap of a follower', 'followers', spoilFeed((events) => events.toSpliced(3, 1))],
  ['a repetition for a follower', 'followers', spoilFeed((all) => [...all, ...all.slice(-1)])],
  ['another order for a follower', 'followers', spoilFeed((events) => events.toReversed())],
  [
    'a change that is not delivered',
    'undelivered',
    spoil('deliveries', (all) => all.filter(({ id }) => id !== all[0]?.id)),
  ],
  [
    'a delivery that nobody caused',
    'forged',
    spoil('deliveries', (all) => [...all, { id: 'x', plantId: 'x', receivedAt: 0 }]),
  ],
  ['a delivery before an earlier change', 'disordered', spoil('deliveries', misplace)],
  [
    'a delivery twice without a fault',
    'repeated',
    spoil('deliveries', ([first, ...others]) =>
      first === undefined
        ? []
        : [{ ...first, receivedAt: 1 }, { ...first, receivedAt: 2 }, ...others],
    ),
  ],
  [
    'too many deliveries twice after a fault',
    'repeated',
    spoil('deliveries', (all) => [...all, ...all.map((one) => ({ ...one, receivedAt: Infinity }))]),
  ],
  ['an export without its plants', 'copied', spoilCopies('export', empty)],
  [
    'a use of a revoked token',
    'admitted',
    spoil('uses', (uses, { revoked }) => [
      ...uses,
      { slot: 0, sentAt: revoked.at + 1_001, status: 200 },
    ]),
  ],
  [
    'an event for a revoked token',
    'admitted',
    spoil('revokedFeeds', (_, { feeds }) =>
      feeds.map((feed) => feed.map((event) => ({ ...event, at: '9999-01-01T00:00:00Z' }))),
    ),
  ],
  [
    'a service that never refuses a revoked token',
    'admitted',
    spoil('uses', (uses) => uses.filter(({ status }) => status !== 401)),
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
    spoilCopies('export', (plants) => new Map([...plants, invented])),
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
