import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { describe, it } from 'node:test'
import { openConnection } from '../../src/store/sqlite/connection.ts'
import { buildSqliteStore } from '../../src/store/sqlite/store.ts'
import { newToken } from '../../src/tokens/format.ts'
import { start } from '../support/command.ts'
import { newFolder } from '../support/folder.ts'
import { authorized, json, operatorToken, startService } from '../support/service.ts'
import { call } from '../support/wire.ts'
import { drip, gather, startProbe } from './crowd.ts'
import { isLong, scale } from './scale.ts'

/** The real service with its real limits in the long run; in the short one, a service that is less patient. */
async function startTarget() {
  if (!isLong) {
    const service = await startService('sqlite::memory:', {
      timeouts: { headersTimeoutMs: 1_000, requestTimeoutMs: 1_500, stallTimeoutMs: 1_000 },
    })
    return { url: service.url, rss: () => process.memoryUsage.rss() }
  }
  const folder = newFolder()
  const env = { PORT: '0', PLANT_STORE_TOKEN: operatorToken }
  const service = start(['serve'], { folder, env })
  const [, url = ''] = await service.waitFor(/address {3}(http:\S+)/)
  const rss = () => {
    const status = readFileSync(`/proc/${service.child.pid}/status`, 'utf8')
    return Number(/VmRSS:\s+(\d+)/.exec(status)?.[1]) * 1024
  }
  return { url, rss }
}

const create = 'POST /plants HTTP/1.1\r\nHost: a\r\n'
const megabytes = (bytes: number) => `${Math.round(bytes / 1024 / 1024)} MB`

describe('slow and greedy clients', async () => {
  const { url, rss } = await startTarget()
  const head = { ...json, Host: 'a' }
  let id = 0
  const createOne = () =>
    call(url, { method: 'POST', path: '/plants', headers: head, body: `{"id":${++id},"name":"x"}` })
  // A plant that takes a while to read.
  const body = `{"id":-1,"name":"${'x'.repeat(1_000_000)}"}`
  await call(url, { method: 'POST', path: '/plants', headers: head, body })

  it('are all closed, those that send slowly and those that read slowly, while others are served', async (t) => {
    const count = scale(40, 1_000)
    const probe = startProbe(createOne)
    const before = rss()
    const crowds = await Promise.all([
      gather(url, count, (socket) => drip(socket, `${create}X-Slow: a`)),
      gather(url, count, (socket) =>
        drip(
          socket,
          `${create}Authorization: ${authorized.Authorization}\r\nContent-Type: application/json\r\nContent-Length: 1000000\r\n\r\n{"`,
        ),
      ),
      gather(url, count, (socket) => {
        socket.pause()
        const request = `GET /plants/-1 HTTP/1.1\r\nHost: a\r\nAuthorization: ${authorized.Authorization}\r\n\r\n`
        socket.write(request.repeat(8))
        socket.removeAllListeners('error').on('error', () => {})
        // What is not read keeps the end of the connection from being seen: it is looked for.
        const timer = setInterval(() => socket.write(' '), 1_000)
        socket.on('close', () => clearInterval(timer))
      }),
    ])
    const [headers, bodies, readers] = await Promise.all(crowds.map(({ closed }) => closed))
    const probes = await probe.stop()
    const seconds = [headers, bodies, readers].map((ms) => ((ms ?? 0) / 1000).toFixed(1))
    t.diagnostic(`${count} each: closed after ${seconds.join(', ')} s; ${probes}`)
    t.diagnostic(`memory ${megabytes(before)}, then ${megabytes(rss())}`)
    assert.deepEqual([...probe.statuses], [200])
  })

  it('may be idle in great numbers: others are served', async (t) => {
    const count = scale(500, 10_000)
    const before = rss()
    const crowd = await gather(url, count, (socket) => {
      socket.on('error', () => {}).resume()
    })
    const probe = startProbe(createOne)
    const most = crowd.size()
    while (probe.statuses.size === 0) await new Promise((resolve) => setTimeout(resolve, 100))
    await new Promise((resolve) => setTimeout(resolve, scale(500, 5_000)))
    t.diagnostic(`${most} idle connections; ${await probe.stop()}`)
    t.diagnostic(`memory ${megabytes(before)}, then ${megabytes(rss())}`)
    assert.deepEqual([...probe.statuses], [200])
    crowd.leave()
  })

  it('may guess tokens for as long as they like: each is refused, and others are served', async (t) => {
    const before = rss()
    const probe = startProbe(createOne)
    let guesses = 0
    const endsAt = performance.now() + scale(1_000, 10_000)
    async function guess(): Promise<void> {
      while (performance.now() < endsAt) {
        const token = guesses++ % 2 === 0 ? newToken() : `guess-${guesses}`
        const { status } = await call(url, {
          path: '/plants',
          headers: { Authorization: `Bearer ${token}` },
        })
        assert.equal(status, 401)
      }
    }
    await Promise.all(Array.from({ length: 32 }, guess))
    t.diagnostic(`${guesses} guesses; ${await probe.stop()}`)
    t.diagnostic(`memory ${megabytes(before)}, then ${megabytes(rss())}`)
    assert.deepEqual([...probe.statuses], [200])
  })
})

describe('more writes than the queue holds', () => {
  it('are refused at once with 503 and Retry-After; the others are stored, and then all are again', async (t) => {
    const path = join(newFolder(), 'plants.db')
    const store = buildSqliteStore(openConnection(path), { queueItems: 20, batchItems: 10 })
    const service = await startService('sqlite::memory:', { store })
    const count = 400
    const blocker = new DatabaseSync(path)
    blocker.exec('BEGIN IMMEDIATE')
    let refused = 0
    const sent = Array.from({ length: count }, async (_, id) => {
      const answer = await service.create(`{"id":${id},"name":"plant ${id}"}`)
      if (answer.status === 503) refused++
      return answer
    })
    while (refused === 0) await new Promise(setImmediate)
    blocker.close()
    const answers = await Promise.all(sent)
    const stored = await service.call({ path: '/plants?limit=1000' })
    const ids = new Set(JSON.parse(stored.body).map((plant: { id: number }) => plant.id))
    for (const [id, { status, headers, body }] of answers.entries()) {
      assert.equal(ids.has(id), status === 200, String(id))
      if (status === 200) continue
      assert.equal(status, 503)
      assert.equal(headers.get('retry-after'), '1')
      assert.equal(JSON.parse(body).error, 50300)
    }
    t.diagnostic(`${refused} of ${count} refused`)
    assert.equal((await service.create('{"id":-1,"name":"after"}')).status, 200)
  })
})
