import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, it } from 'node:test'
import { fileURLToPath } from 'node:url'
import { scopes } from '../../src/contract/scopes.ts'
import { openConnection } from '../../src/store/sqlite/connection.ts'
import { buildSqliteStore } from '../../src/store/sqlite/store.ts'
import type { Store } from '../../src/store/store.ts'
import { issueToken } from '../../src/tokens/issue.ts'
import { newFolder } from '../support/folder.ts'
import { operatorToken, startService } from '../support/service.ts'
import { closeAfterTest, openSqliteStore } from '../support/stores.ts'
import { clean, judge, type Verdict, type Wrong } from './lab/checker.ts'
import { readFinalState } from './lab/final-state.ts'
import { newHistory, waitForWrites } from './lab/history.ts'
import { startLoad } from './lab/load.ts'
import { startProcess, token } from './lab/service-process.ts'
import { type Spoil, spoilers } from './lab/wrong-stores.ts'

const enoughWrites = 100

function newPath(): string {
  return join(newFolder(), 'plants.db')
}

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
  await load.stop()
  return judge(history, await readFinalState(service.url, operatorToken, history))
}

const openInMemory = () => openSqliteStore(':memory:')

/** Opens a store that soon has no space left. */
function openSmall(): Store {
  const db = openConnection(':memory:')
  // Free pages would take the first plants.
  db.exec('VACUUM')
  const row = db.prepare('PRAGMA page_count').get()
  db.exec(`PRAGMA max_page_count = ${row?.page_count}`)
  return closeAfterTest(buildSqliteStore(db))
}

const spoilt: [what: string, spoil: Spoil, caughtAs: Wrong, open: () => Store][] = [
  ['swallows commit errors', spoilers.swallowCommitErrors, 'lost', openSmall],
  ['rounds ids', spoilers.roundIds, 'lost', openInMemory],
  ['answers with the content of another plant', spoilers.mixContents, 'wrong', openInMemory],
  ['forgets its keys', spoilers.forgetKeys, 'duplicate', openInMemory],
  ['stores a keyed create twice', spoilers.storeTwice, 'duplicate', openInMemory],
  ['acknowledges deletes and does nothing', spoilers.deleteNothing, 'invented', openInMemory],
  ['skips a plant at the end of a page', spoilers.skipAtPageEnd, 'disagreeing', openInMemory],
  ['reads from an old cache', spoilers.readFromOldCache, 'stale', openInMemory],
  ['leaves changes out of its feed', spoilers.skipChanges, 'missing', openInMemory],
  ['tells changes twice', spoilers.repeatChanges, 'extra', openInMemory],
]

describe('the checker', () => {
  it('finds no mistake in the service itself', async () => {
    assert.deepEqual(await tryStore(openInMemory()), clean)
  })

  for (const [what, spoil, caughtAs, open] of spoilt) {
    it(`catches a service that ${what} (control)`, async (test) => {
      const verdict = await tryStore(spoil(open()))
      test.diagnostic(JSON.stringify(verdict))
      assert.ok(verdict[caughtAs] > 0)
    })
  }

  it('catches a killed service that acknowledges before it commits (control)', async (test) => {
    const database = `sqlite:${newPath()}`
    const program = fileURLToPath(new URL('./lab/wrong-service.ts', import.meta.url))
    const wrong = await startProcess({ database, command: [program, 'acknowledgeBeforeCommit'] })
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

describe('an issued token', () => {
  it('is not in the log, the database or an answer, not even half of it', async () => {
    const path = newPath()
    const store = openSqliteStore(path)
    const service = await startService('sqlite::memory:', { store, env: { LOG_LEVEL: 'debug' } })
    const name = 'a token to look for'
    const issued = await issueToken(store, { name, scopes, lifetimeMs: undefined })
    const headers = {
      Authorization: `Bearer ${issued.token}`,
      'Content-Type': 'application/json',
      'Idempotency-Key': 'key',
    }
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
    const texts = [
      answers,
      log,
      ...[path, `${path}-wal`].map((file) => readFileSync(file, 'latin1')),
    ]
    assert.ok(log.includes('answered'))
    assert.ok(texts.at(-1)?.includes(name))
    const half = issued.token.length / 2
    for (const part of [issued.token.slice(0, half), issued.token.slice(half)]) {
      for (const text of texts) assert.ok(!text.includes(part))
    }
  })
})
