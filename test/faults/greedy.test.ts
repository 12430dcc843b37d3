import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { before, describe, it } from 'node:test'
import { start } from '../support/command.ts'
import { newFolder } from '../support/folder.ts'
import { authorized, json, operatorToken, startService } from '../support/service.ts'
import { openSqliteStore } from '../support/stores.ts'
import { waitUntil } from '../support/wait.ts'
import { call } from '../support/wire.ts'
import { drip, gather } from './lab/crowd.ts'
import { startProbe } from './lab/probe.ts'
import { isLong, scale } from './lab/scale.ts'

interface Target {
  readonly url: string
  readonly rss: () => number
}

/** Starts the service with its real limits in the long run, and with shorter ones otherwise. */
async function startTarget(): Promise<Target> {
  const folder = newFolder()
  const path = join(folder, 'plants.db')
  // A large plant, to read slowly: an earlier release has stored it.
  const store = openSqliteStore(path)
  await store.createPlant({ id: -1n, name: 'x'.repeat(1_000_000) })
  await store.close()
  if (!isLong) {
    const service = await startService(`sqlite:${path}`, {
      timeouts: { headersTimeoutMs: 1_000, requestTimeoutMs: 1_500, stallTimeoutMs: 1_000 },
    })
    return { url: service.url, rss: () => process.memoryUsage.rss() }
  }
  const env = { PORT: '0', PLANT_STORE_TOKEN: operatorToken, DATABASE_URL: `sqlite:${path}` }
  const service = start(['serve'], { folder, env })
  const [, url = ''] = await service.waitFor(/address {3}(http:\S+)/)
  const rss = () => {
    const status = readFileSync(`/proc/${service.child.pid}/status`, 'utf8')
    return Number(/VmRSS:\s+(\d+)/.exec(status)?.[1]) * 1024
  }
  return { url, rss }
}

const credentials = `Authorization: ${authorized.Authorization}\r\n`
const slowHead = 'POST /plants HTTP/1.1\r\nHost: a\r\n'
const slowBody = 'Content-Type: application/json\r\nContent-Length: 8000\r\n\r\n{"'
const largeGet = `GET /plants/-1 HTTP/1.1\r\nHost: a\r\n${credentials}\r\n`
const megabytes = (bytes: number) => `${Math.round(bytes / 1024 / 1024)} MB`

describe('slow and greedy clients', () => {
  let url: string
  let rss: Target['rss']
  let id = 0
  const create = (body: string) =>
    call(url, { method: 'POST', path: '/plants', headers: { ...json, Host: 'a' }, body })
  const createOne = () => create(`{"id":${++id},"name":"x"}`)
  before(async () => {
    ;({ url, rss } = await startTarget())
  })

  it('are cut off, whether they send slowly or read slowly, while others are served', async (t) => {
    const count = scale(15, 1_000)
    const probe = startProbe(createOne)
    const before = rss()
    const crowds = await Promise.all([
      gather(url, count, (socket) => drip(socket, `${slowHead}X-Slow: a`)),
      gather(url, count, (socket) => drip(socket, slowHead + credentials + slowBody)),
      gather(url, count, (socket) => {
        socket.pause()
        socket.write(largeGet.repeat(8))
        // A paused connection does not see its end, but a write fails then.
        const timer = setInterval(() => socket.write(' '), 1_000)
        socket.on('close', () => clearInterval(timer))
      }),
    ])
    const [headers, bodies, readers] = await Promise.all(crowds.map(({ closed }) => closed))
    const probes = await probe.stop()
    const seconds = [headers, bodies, readers].map((ms) => ((ms ?? 0) / 1000).toFixed(1))
    t.diagnostic(`${count} each: closed after ${seconds.join(', ')} s; ${probes}`)
    t.diagnostic(`memory ${megabytes(before)}, then ${megabytes(rss())}`)
    assert.deepEqual(probe.statuses(), [200])
  })

  it('may be idle in great numbers, while others are served', async (t) => {
    const count = scale(200, 10_000)
    const before = rss()
    const crowd = await gather(url, count, (socket) => socket.resume())
    const size = crowd.size()
    const probe = startProbe(createOne)
    await waitUntil(() => probe.count() >= scale(20, 200), 'others are served')
    t.diagnostic(`${size} idle connections; ${await probe.stop()}`)
    t.diagnostic(`memory ${megabytes(before)}, then ${megabytes(rss())}`)
    assert.deepEqual(probe.statuses(), [200])
  })
})
