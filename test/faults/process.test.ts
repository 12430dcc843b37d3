import assert from 'node:assert/strict'
import { once } from 'node:events'
import { DatabaseSync } from 'node:sqlite'
import { it } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { scopes } from '../../src/contract/scopes.ts'
import { issueToken } from '../../src/tokens/issue.ts'
import { sqlite } from '../support/engines.ts'
import { openSqliteStore } from '../support/stores.ts'
import { call, openSocket, type Request } from '../support/wire.ts'
import { countOutcomes, longestWaitMs } from './lab/history.ts'
import { scale } from './lab/scale.ts'
import { startProcess } from './lab/service-process.ts'
import { openTrial } from './lab/trial.ts'

const stopMs = scale(700, 5_000)
const rounds = scale(1, 10)
const clients = { writers: 8, thinkMs: 0 }
const fewWrites = scale(30, 100)
const manyWrites = scale(60, 300)

it('a service that was stopped for a while answers every request and loses nothing', async (test) => {
  const { services, history, ...trial } = await openTrial({
    database: await sqlite.newUrl(),
    clients,
  })
  for (let round = 0; round < rounds; round++) {
    await trial.writes(fewWrites)
    await trial.suffer(async () => {
      services[0]?.child.kill('SIGSTOP')
      await sleep(stopMs)
      services[0]?.child.kill('SIGCONT')
      await trial.writes(fewWrites)
    })
  }
  await trial.requireClean(test)
  assert.equal(countOutcomes(history).ok, history.attempts.length)
  assert.ok(longestWaitMs(history) >= stopMs, 'it was not stopped')
})

it('a service takes two signals at once, of a terminal and of npm, for one', async () => {
  const service = await startProcess({ database: await sqlite.newUrl() })
  // Both signals wait until the process continues.
  service.child.kill('SIGSTOP')
  service.child.kill('SIGINT')
  service.child.kill('SIGTERM')
  assert.equal(await service.end('SIGCONT'), 0)
})

it('a service with fewer descriptors than idle connections serves old and new clients, and pages', async (test) => {
  const trial = await openTrial({ database: await sqlite.newUrl(), clients, descriptors: 600 })
  const { url, child } = trial.services[0] ?? assert.fail()
  await trial.writes(fewWrites)
  const sockets = Array.from({ length: 700 }, () => openSocket(url))
  await Promise.all(sockets.map((socket) => once(socket, 'connect').catch(() => {})))
  for (const path of ['/healthz', '/docs']) assert.equal((await call(url, { path })).status, 200)
  await trial.writes(manyWrites)
  await trial.requireClean(test)
  assert.equal(child.exitCode, null)
})

it('a service whose clock is set back keeps tokens, keys and plants, and refuses revoked tokens', async (test) => {
  const database = await sqlite.newUrl()
  const path = database.replace('sqlite:', '')
  const { lasting, short, revoked } = await issueTokens(path)
  const trial = await openTrial({ database, clients })
  const service = trial.services[0] ?? assert.fail()
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

  await trial.writes(fewWrites)
  await trial.setClockBack(0)
  await trial.writes(manyWrites)
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
  await trial.requireClean(test)
  assert.equal(countOutcomes(trial.history).ok, trial.history.attempts.length)
  assert.equal(await service.end('SIGINT'), 0)
})

async function issueTokens(path: string) {
  const store = openSqliteStore(path)
  const issue = (lifetimeMs: number | undefined) =>
    issueToken(store, { name: 'x', scopes, lifetimeMs })
  const [lasting, short] = [await issue(86_400_000), await issue(1)]
  const revoked = await issue(undefined)
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
