import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { before, describe, it } from 'node:test'
import type { Store } from '../../src/store/store.ts'
import { sqlite } from '../support/engines.ts'
import { operatorToken, startService } from '../support/service.ts'
import { openSqliteStore } from '../support/stores.ts'
import { waitUntil } from '../support/wait.ts'
import { judge, type Verdict, type Wrong } from './lab/checker.ts'
import { readFinalState } from './lab/final-state.ts'
import {
  cleanTrial,
  type Delivery,
  type Evidence,
  judgeTrial,
  type TrialVerdict,
} from './lab/follower-checker.ts'
import { newHistory, waitForWrites } from './lab/history.ts'
import { startLoad } from './lab/load.ts'
import type { Seen } from './lab/mirror.ts'
import { programOf, startProcess, token } from './lab/service-process.ts'
import { openTrial } from './lab/trial.ts'
import { spoil, type Wrongdoing } from './lab/wrong-stores.ts'

const enoughWrites = 100

/** The verdict of the checker on a service with this store. */
async function tryStore(store: Store): Promise<Verdict> {
  const service = await startService('sqlite::memory:', { store })
  const history = newHistory()
  const load = startLoad(history, {
    urls: [service.url],
    token: operatorToken,
    writers: 4,
    readers: 1,
  })
  await waitForWrites(history, enoughWrites)
  await waitUntil(() => history.exports >= 2, 'a second export')
  await load.stop()
  return judge(history, await readFinalState(service.url, operatorToken, history))
}

const spoilt: [what: string, wrongdoing: Wrongdoing, caughtAs: Wrong][] = [
  ['refuses what it has stored', 'refuseStored', 'invented'],
  ['rounds ids', 'roundIds', 'lost'],
  ['answers with the content of another plant', 'mixContents', 'wrong'],
  ['forgets its keys', 'forgetKeys', 'duplicate'],
  ['stores a keyed create twice', 'storeTwice', 'duplicate'],
  ['acknowledges deletes and does nothing', 'deleteNothing', 'invented'],
  ['skips a plant at the end of a page', 'skipAtPageEnd', 'disagreeing'],
  ['reads from an old cache', 'readFromOldCache', 'stale'],
  ['exports an earlier moment', 'exportFirstMoment', 'stale'],
  ['leaves changes out of its feed', 'skipChanges', 'missing'],
  ['tells changes twice', 'repeatChanges', 'extra'],
  ['tells changes in another order', 'reverseChanges', 'outOfOrder'],
]

describe('the checker', () => {
  for (const [what, wrongdoing, caughtAs] of spoilt) {
    it(`catches a service that ${what} (control)`, async (test) => {
      const verdict = await tryStore(spoil(openSqliteStore(':memory:'), wrongdoing))
      test.diagnostic(JSON.stringify(verdict))
      assert.ok(verdict[caughtAs] > 0)
    })
  }

  it('catches a killed service that acknowledges before it commits (control)', async (test) => {
    const database = await sqlite.newUrl()
    const command = programOf('acknowledgeBeforeCommit')
    const wrong = await startProcess({ database, command })
    const history = newHistory()
    const load = startLoad(history, { urls: [wrong.url], token, writers: 8, readers: 0 })
    await waitForWrites(history, enoughWrites)
    await wrong.end('SIGKILL')
    await load.stop()
    const service = await startProcess({ database })
    const verdict = judge(history, await readFinalState(service.url, token, history))
    test.diagnostic(JSON.stringify(verdict))
    assert.ok(verdict.lost > 0)
  })
})

/** Spoils what a trial has seen of followers or of webhooks. */
const spoilMirror =
  (change: (seen: readonly Seen[]) => readonly Seen[]) => (evidence: Evidence) => ({
    ...evidence,
    mirrors: evidence.mirrors.map(change),
  })
const spoilDeliveries =
  (change: (deliveries: readonly Delivery[]) => readonly Delivery[]) => (evidence: Evidence) => ({
    ...evidence,
    deliveries: change(evidence.deliveries),
  })
const again = (delivery: Delivery) => ({ ...delivery, receivedAt: Number.POSITIVE_INFINITY })

/** Exchanges the first arrivals of two changes to one plant. */
function misplace(deliveries: readonly Delivery[]): Delivery[] {
  const once = new Map(deliveries.map((one) => [one.id, one])).values()
  const byPlant = Map.groupBy(once, ({ plantId }) => plantId)
  const [first, second] = [...byPlant.values()].find((own) => own.length > 1) ?? []
  const ids = new Map([
    [first?.id, second?.id],
    [second?.id, first?.id],
  ])
  return deliveries.map((one) => ({ ...one, id: ids.get(one.id) ?? one.id }))
}

const evidences: [what: string, keyof TrialVerdict, (evidence: Evidence) => Evidence][] = [
  ['a gap of a mirror', 'skipped', spoilMirror((seen) => seen.toSpliced(3, 1))],
  ['a repetition for a mirror', 'skipped', spoilMirror((seen) => [...seen, ...seen.slice(-1)])],
  ['another order for a mirror', 'skipped', spoilMirror((seen) => seen.toReversed())],
  [
    'a mirror with other plants',
    'untrue',
    spoilMirror((seen) => seen.map((one) => ({ ...one, digest: 1n }))),
  ],
  ['a change that is not delivered', 'undelivered', spoilDeliveries((all) => all.slice(1))],
  [
    'a delivery that nobody caused',
    'forged',
    spoilDeliveries((all) => [...all, { id: 'x', plantId: 'x', receivedAt: 0 }]),
  ],
  ['a delivery before an earlier change', 'disordered', spoilDeliveries(misplace)],
  [
    'a delivery twice without a fault',
    'repeated',
    spoilDeliveries((all) => [...all, ...all.slice(0, 1)]),
  ],
  [
    'too many deliveries twice after a fault',
    'repeated',
    spoilDeliveries((all) => [...all, ...all.map(again)]),
  ],
]

describe('a trial', () => {
  let evidence: Evidence
  before(async () => {
    const trial = await openTrial({ database: await sqlite.newUrl() })
    await trial.writes(enoughWrites)
    await trial.restart(0)
    evidence = await trial.collect()
  })

  it('acquits the service itself', () => assert.deepEqual(judgeTrial(evidence), cleanTrial))

  for (const [what, caughtAs, spoil] of evidences) {
    it(`does not acquit it of ${what} (control)`, () => {
      assert.ok(judgeTrial(spoil(evidence))[caughtAs] > 0)
    })
  }
})

it('half of a token is in no log, database or answer', async () => {
  const path = (await sqlite.newUrl()).replace('sqlite:', '')
  const store = openSqliteStore(path)
  const service = await startService('sqlite::memory:', { store, env: { LOG_LEVEL: 'debug' } })
  const issued = await service.issue()
  const type = { 'Content-Type': 'application/json' }
  const headers = { ...issued.headers, ...type, 'Idempotency-Key': 'key' }
  let answers = ''
  for (const [method, target, body = ''] of [
    ['POST', '/plants', '{"id":1,"name":"x"}'],
    ['POST', '/plants', '{"id":1,"name":"y"}'],
    ['POST', '/plants', '{"id":'],
    ['GET', '/plants'],
    ['GET', '/plants/1'],
    ['PUT', '/plants/1', '{"name":"z"}'],
    ['DELETE', '/plants/1'],
    ['DELETE', '/plants/%zz'],
  ] as const) {
    const answer = await service.call({ method, path: target, headers, body })
    answers += [...answer.headers].join('\n') + answer.body
  }
  await store.revokeToken(issued.record.id, Date.now())
  const log = service.log.join('\n')
  const texts = [answers, log, ...[path, `${path}-wal`].map((file) => readFileSync(file, 'latin1'))]
  assert.ok(log.includes('answered'))
  assert.ok(texts.at(-1)?.includes(issued.record.id))
  const half = issued.token.length / 2
  for (const part of [issued.token.slice(0, half), issued.token.slice(half)]) {
    for (const text of texts) assert.ok(!text.includes(part))
  }
})
