import assert from 'node:assert/strict'
import { once } from 'node:events'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { describe, it } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { scopes } from '../../src/contract/scopes.ts'
import { issueToken } from '../../src/tokens/issue.ts'
import { newFolder } from '../support/folder.ts'
import { openSqliteStore } from '../support/stores.ts'
import { waitUntil } from '../support/wait.ts'
import { call, openSocket, type Request } from '../support/wire.ts'
import { clean, judge } from './lab/checker.ts'
import { readFinalState } from './lab/final-state.ts'
import {
  countOutcomes,
  type History,
  longestWaitMs,
  newHistory,
  waitForWrites,
} from './lab/history.ts'
import { startLoad } from './lab/load.ts'
import { scale } from './lab/scale.ts'
import { startProcess, token } from './lab/service-process.ts'

const stopMs = scale(700, 5_000)
const rounds = scale(1, 10)
const clients = { token, writers: 8, readers: 2 }
const fewWrites = scale(30, 100)
const manyWrites = scale(60, 300)

function newDatabase(): string {
  return `sqlite:${join(newFolder(), 'plants.db')}`
}

async function toVerdict(history: History, url: string) {
  const verdict = judge(history, await readFinalState(url, token, history))
  return { verdict, figures: JSON.stringify({ ...countOutcomes(history), ...verdict }) }
}

describe('a service that is stopped for a while', () => {
  it('goes on, answers every request and loses nothing', async (test) => {
    const service = await startProcess({ database: newDatabase() })
    const history = newHistory()
    const load = startLoad(history, { urls: [service.url], ...clients })
    for (let round = 0; round < rounds; round++) {
      await waitForWrites(history, fewWrites)
      service.child.kill('SIGSTOP')
      await sleep(stopMs)
      service.child.kill('SIGCONT')
    }
    await waitForWrites(history, fewWrites)
    await load.stop()
    const { verdict, figures } = await toVerdict(history, service.url)
    test.diagnostic(`${figures}, longest wait ${longestWaitMs(history)} ms`)
    assert.deepEqual(verdict, clean)
    assert.equal(countOutcomes(history).ok, history.attempts.length)
    assert.ok(longestWaitMs(history) >= stopMs, 'it was not stopped')
  })
})

describe('a service that gets two signals at once', () => {
  it('takes them for one, as a terminal and npm both send it, and ends in good order', async () => {
    const service = await startProcess({ database: newDatabase() })
    // Both signals wait until the process goes on.
    service.child.kill('SIGSTOP')
    service.child.kill('SIGINT')
    service.child.kill('SIGTERM')
    assert.equal(await service.end('SIGCONT'), 0)
  })
})

describe('a service with fewer descriptors than there are idle connections', () => {
  it('serves its clients, new ones, and pages that are built from files', async (test) => {
    const service = await startProcess({ database: newDatabase(), descriptors: 600 })
    const history = newHistory()
    const load = startLoad(history, { urls: [service.url], ...clients })
    await waitForWrites(history, fewWrites)
    await openConnections(service.url, 700)
    for (const path of ['/healthz', '/docs']) {
      assert.equal((await call(service.url, { path })).status, 200)
    }
    await waitForWrites(history, manyWrites)
    await load.stop()
    const { verdict, figures } = await toVerdict(history, service.url)
    test.diagnostic(figures)
    assert.equal(service.child.exitCode, null)
    assert.deepEqual(verdict, clean)
  })
})

async function openConnections(url: string, count: number): Promise<void> {
  const sockets = Array.from({ length: count }, () => openSocket(url))
  await Promise.all(sockets.map((socket) => once(socket, 'connect').catch(() => {})))
}

describe('a service whose clock is set back by an hour', () => {
  it('keeps tokens, keys and plants, and refuses revoked tokens', async (test) => {
    const path = join(newFolder(), 'plants.db')
    const { lasting, short, revoked } = await issueTokens(path)
    const clock = new URL('./lab/clock.ts', import.meta.url)
    const env = { NODE_OPTIONS: `--import=${clock}` }
    const service = await startProcess({ database: `sqlite:${path}`, env })
    const send = (of: string, request: Request) => {
      const headers = { Authorization: `Bearer ${of}`, 'Content-Type': 'application/json' }
      return call(service.url, { ...request, headers: { ...headers, ...request.headers } })
    }
    const create = (id: number, key: string) =>
      send(lasting, {
        method: 'POST',
        path: '/plants',
        headers: { 'Idempotency-Key': key },
        body: `{"id":${id},"name":"x"}`,
      })
    const remove = (id: number) => send(lasting, { method: 'DELETE', path: `/plants/${id}` })
    const before = await create(-1, 'before')
    await remove(-1)
    assert.equal((await send(short, { path: '/plants' })).status, 401)

    const history = newHistory()
    const load = startLoad(history, { urls: [service.url], ...clients })
    await waitForWrites(history, fewWrites)
    service.child.kill('SIGUSR2')
    await waitUntil(() => service.output().includes('the clock says'), 'the clock is set')
    await waitForWrites(history, manyWrites)
    const after = await create(-1, 'before')
    assert.equal(after.status, 200)
    assert.equal(after.headers.get('idempotency-replayed'), 'true')
    assert.equal(after.headers.get('etag'), before.headers.get('etag'))
    assert.notEqual(after.headers.get('x-request-id'), before.headers.get('x-request-id'))
    assert.equal((await create(-2, 'after')).status, 200)
    assert.equal((await remove(-2)).status, 204)
    assert.ok(Date.now() - readKeyTime(path, 'after') > 3_500_000, 'the clock was not set back')
    assert.equal((await send(revoked, { path: '/plants' })).status, 401)
    // Expiry follows the current clock: one that was wrong must not expire tokens for good.
    assert.equal((await send(short, { path: '/plants' })).status, 200)

    await load.stop()
    const { verdict, figures } = await toVerdict(history, service.url)
    test.diagnostic(figures)
    assert.deepEqual(verdict, clean)
    assert.equal(countOutcomes(history).ok, history.attempts.length)
    assert.equal(await service.end('SIGINT'), 0)
  })
})

async function issueTokens(path: string) {
  const store = openSqliteStore(path)
  const issue = (lifetimeMs: number | undefined) =>
    issueToken(store, { name: 'x', scopes, lifetimeMs })
  const [lasting, short, revoked] = [
    await issue(86_400_000),
    await issue(1),
    await issue(undefined),
  ]
  await store.revokeToken(revoked.record.id, Date.now())
  await store.close()
  return { lasting: lasting.token, short: short.token, revoked: revoked.token }
}

/** Reads when a key was used, by the clock of the service. */
function readKeyTime(path: string, key: string): number {
  using db = new DatabaseSync(path, { readOnly: true })
  const row = db.prepare('SELECT used_at FROM keys WHERE key = ?').get(key)
  return Number(row?.used_at)
}

describe('two services on one SQLite file', () => {
  it('lose nothing and see the writes of the other, though one is killed', async (test) => {
    const database = newDatabase()
    const [killed, other] = [await startProcess({ database }), await startProcess({ database })]
    const history = newHistory()
    const load = startLoad(history, { urls: [killed.url, other.url], ...clients })
    await waitForWrites(history, manyWrites)
    await killed.end('SIGKILL')
    await waitForWrites(history, fewWrites)
    await load.stop()
    const { verdict, figures } = await toVerdict(history, other.url)
    test.diagnostic(figures)
    assert.deepEqual(verdict, clean)
  })
})
