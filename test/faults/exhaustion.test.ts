import assert from 'node:assert/strict'
import { readdirSync, readFileSync, statSync } from 'node:fs'
import type { Socket } from 'node:net'
import { join } from 'node:path'
import { before, describe, it } from 'node:test'
import { fileURLToPath } from 'node:url'
import { limits } from '../../src/contract/limits.ts'
import { newFolder } from '../support/folder.ts'
import { parseMetrics } from '../support/metrics.ts'
import { openSqliteStore } from '../support/stores.ts'
import { toLines } from '../support/upload.ts'
import { waitUntil } from '../support/wait.ts'
import { call, openSocket } from '../support/wire.ts'
import { gather } from './lab/crowd.ts'
import { startClients } from './lab/probe.ts'
import { scale } from './lab/scale.ts'
import { type ServiceProcess, startProcess, token } from './lab/service-process.ts'

const program = fileURLToPath(new URL('../../bin/plant-store.js', import.meta.url))
const connections = scale(100, 1_000)
const attackers = scale(12, 1_000)
/** How many others are connected before, and send one get after the other. */
const clients = 20
const authorization = `Authorization: Bearer ${token}\r\n`
const postHead = `POST /plants HTTP/1.1\r\nHost: a\r\n${authorization}Content-Type: application/json\r\n`

/** A body in which every small object would take 12 KB as a value. */
const dearBody = (() => {
  const start = '{"id":1,"name":"x","a":['
  const element = '{"1023":0}'
  const count = Math.floor((limits.bodyBytes - start.length - 2) / (element.length + 1))
  return `${start}${Array(count).fill(element).join(',')}]}`
})()

/** What each of many connections does, all at once. */
const attacks: Record<string, (socket: Socket) => void> = {
  'bodies that are dear as values, again and again'(socket) {
    const create = `${postHead}Content-Length: ${dearBody.length}\r\n\r\n${dearBody}`
    socket.on('data', () => socket.write(create))
    socket.write(create)
  },

  'requests that are pipelined without a token, and never read'(socket) {
    socket.pause()
    socket.write('GET /docs HTTP/1.1\r\nHost: a\r\n\r\n'.repeat(2_000))
  },

  'bodies in chunks of one byte'(socket) {
    socket.resume()
    socket.write(`${postHead}Transfer-Encoding: chunked\r\n\r\n`)
    const bytes = Buffer.from('1\r\n \r\n'.repeat(100))
    const timer = setInterval(() => socket.write(bytes), 200)
    socket.on('close', () => clearInterval(timer))
  },
}

describe('a service with a heap of 256 MB', () => {
  let service: ServiceProcess
  let id = 0
  before(async () => {
    service = await startProcess({
      database: `sqlite:${join(newFolder(), 'plants.db')}`,
      command: ['--max-old-space-size=256', program, 'serve'],
    })
  })

  for (const [title, attack] of Object.entries(attacks)) {
    it(`serves others beside ${attackers} connections with ${title}`, async (t) => {
      const headers = { Authorization: `Bearer ${token}` }
      const body = `{"id":${++id + 1_000},"name":"x"}`
      const json = { ...headers, 'Content-Type': 'application/json' }
      await call(service.url, { method: 'POST', path: '/plants', headers: json, body })
      const probe = startClients(clients, `${service.url}/plants/${id + 1_000}`, headers)
      await waitUntil(() => probe.count() >= clients, 'they are connected')
      await gather(service.url, attackers, attack)
      const attackedFrom = probe.count()
      const served = clients * scale(10, 300)
      await waitUntil(() => probe.count() >= attackedFrom + served, 'others are served')
      t.diagnostic(`${await probe.stop()}; memory ${readPeakMb(service)} MB at most`)
      assert.deepEqual(probe.statuses(), [200])
      assert.equal(service.child.exitCode, null)
    })
  }
})

describe('imports in chunks of one byte', () => {
  it('are refused with 413, hold little memory, and their connections are closed', async (t) => {
    const service = await startProcess({
      database: `sqlite:${join(newFolder(), 'plants.db')}`,
      command: ['--max-old-space-size=256', program, 'serve'],
    })
    // A first import of any kind takes memory for its code.
    await importFile(service, Array(10_000).fill('x'))
    const before = readPeakMb(service)
    const head = `POST /plants.ndjson HTTP/1.1\r\nHost: a\r\n${authorization}Content-Type: application/x-ndjson\r\nTransfer-Encoding: chunked\r\n\r\n`
    const body = '1\r\n \r\n'.repeat(800_000)
    const answers = await Promise.all(
      Array.from({ length: 4 }, async () => {
        const socket = openSocket(service.url)
        socket.write(`${head}${body}0\r\n\r\n`)
        let received = ''
        for await (const chunk of socket.setEncoding('latin1').iterator()) {
          received += chunk
          if (received.includes('}')) break
        }
        return received
      }),
    )
    for (const answer of answers) {
      assert.match(answer, /^HTTP\/1\.1 413 [\s\S]*Connection: close[\s\S]*"error":41300/)
    }
    const grown = readPeakMb(service) - before
    t.diagnostic(`memory ${before} MB, and ${grown} MB more at most`)
    assert.ok(grown < 40, `${grown} MB more`)
  })
})

describe('a new connection', () => {
  it(`gets its turn beside ${connections} that ask for dear pages at once`, async (t) => {
    const service = await startProcess({ database: 'sqlite::memory:' })
    await importFile(service, Array(1_000).fill('x'.repeat(900)))
    const head = `HEAD /plants?limit=1000 HTTP/1.1\r\nHost: a\r\n${authorization}\r\n`
    let answered = 0
    await gather(service.url, connections, (socket) => {
      socket.on('data', () => {
        answered++
        socket.write(head)
      })
      socket.write(head)
    })
    const { status } = await call(service.url, { path: '/healthz', headers: {} })
    t.diagnostic(`${answered} requests were answered before`)
    assert.equal(status, 200)
    // One for each turn of the event loop that accepts a connection would be half of the square.
    assert.ok(answered < connections ** 2 / 10, `${answered} requests came first`)
  })
})

/** Plants, how often each connection asks for what, and how much memory all may take. */
const unread: [
  title: string,
  string[],
  path: string,
  sockets: number,
  requests: number,
  mb: number,
][] = [
  ['pages', Array(150).fill('x'.repeat(8_000)), '/plants?limit=1000', scale(200, 800), 6, 200],
  // Earlier releases stored plants of up to 1 MiB.
  ['of six megabytes', ['\u0001'.repeat(1_000_000)], '/plants/0', scale(70, 300), 1, 350],
]

describe('answers that are not read', () => {
  for (const [title, names, path, sockets, requests, mb] of unread) {
    it(`hold a bounded amount of memory over all connections: ${title}`, async (t) => {
      const service = await startProcess({ database: await newStore(names) })
      const before = readPeakMb(service)
      const get = `GET ${path} HTTP/1.1\r\nHost: a\r\n${authorization}\r\n`
      await gather(service.url, sockets, (socket) => {
        socket.pause()
        socket.write(get.repeat(requests))
      })
      // Requests of one token begin in the order in which they come. This one may be too late.
      const last = await call(service.url, {
        path: '/plants',
        headers: { Authorization: `Bearer ${token}` },
      })
      assert.ok([200, 503].includes(last.status), String(last.status))
      const grown = readPeakMb(service) - before
      t.diagnostic(`memory ${before} MB, and ${grown} MB more at most`)
      assert.ok(grown < mb, `${grown} MB more`)
    })
  }

  it('share the document: many readers of it take little memory', async (t) => {
    const service = await startProcess({ database: 'sqlite::memory:' })
    const get = 'GET /openapi.json HTTP/1.1\r\nHost: localhost\r\n\r\n'
    await call(service.url, { path: '/openapi.json', headers: {} })
    const before = readPeakMb(service)
    const readers = scale(300, 3_000)
    await gather(service.url, readers, (socket) => {
      socket.pause()
      socket.write(get.repeat(20))
    })
    const { status } = await call(service.url, { path: '/readyz', headers: {} })
    assert.equal(status, 200)
    const grown = readPeakMb(service) - before
    t.diagnostic(`memory ${before} MB, and ${grown} MB more at most`)
    // 200 KB for each of 3,000 before.
    assert.ok(grown < 30 + readers * 0.05, `${grown} MB more`)
  })

  it('are cut where they are streams of events as well', async () => {
    const database = await newStore(Array(2_000).fill('x'.repeat(8_000)))
    const service = await startProcess({ database })
    const get = `GET /events HTTP/1.1\r\nHost: a\r\n${authorization}Accept: text/event-stream\r\n\r\n`
    await gather(service.url, 200, (socket) => {
      socket.pause()
      socket.write(get)
    })
    await waitUntil(() => countFiles(service) > 200, 'all are connected')
    // Each has a megabyte of the 64 that may wait.
    await waitUntil(() => countFiles(service) < 120, 'streams are cut')
    // The limit on the time without reading would have cut all.
    assert.ok(countFiles(service) > 50, `${countFiles(service)} files are open`)
  })
})

describe('imports that replace the same plants again and again', () => {
  it('do not fill the disk', async (t) => {
    const path = join(newFolder(), 'plants.db')
    const env = { JOURNAL_MAX: '16MiB' }
    const service = await startProcess({ database: `sqlite:${path}`, env })
    const headers = { Authorization: `Bearer ${token}` }
    const count = 1_900
    const bodies = ['x', 'y'].map((letter) => toLines(0, count, letter.repeat(8_000)))
    let sent = 0
    const scrape = async () => {
      const { body } = await call(service.url, { path: '/metrics', headers })
      return parseMetrics(body)
    }
    for (let imports = 0; imports < scale(6, 100); imports++) {
      const body = bodies[imports % 2] ?? assert.fail()
      const answer = await call(service.url, {
        method: 'POST',
        path: '/plants.ndjson?on-conflict=replace',
        headers: { ...headers, 'Content-Type': 'application/x-ndjson' },
        body,
      })
      assert.equal(answer.status, 200)
      sent += body.length
      // At most 16 MiB of changes are left.
      const dropped = count * imports - 200
      await waitUntil(async () => {
        const found = (await scrape()).get('plant_store_journal_dropped_changes_total') ?? 0
        return found >= dropped
      }, `${dropped} changes are dropped`)
    }
    const mb = Math.round((statSync(path).size + statSync(`${path}-wal`).size) / 1e6)
    t.diagnostic(`${sent / 1e6} MB were sent; the store takes ${mb} MB`)
    // Plants of 15 MB, two imports of as much in the journal, and the log.
    assert.ok(mb < 100, `${mb} MB`)
  })
})

/** Makes a store of plants with these names, and the ids from 0 on. */
async function newStore(names: readonly string[]): Promise<string> {
  const path = join(newFolder(), 'plants.db')
  const store = openSqliteStore(path)
  const plants = names.map((name, id) => ({ id: BigInt(id), name }))
  for (let at = 0; at < plants.length; at += 100) {
    await store.importPlants(plants.slice(at, at + 100), 'keep')
  }
  await store.close()
  return `sqlite:${path}`
}

/** Imports plants with these names, and the ids from 0 on. */
async function importFile({ url }: ServiceProcess, names: readonly string[]): Promise<void> {
  const body = names.map((name, id) => `${id},${name}\n`).join('')
  const headers = { Authorization: `Bearer ${token}`, 'Content-Type': 'text/csv' }
  const path = '/plants.csv'
  const answer = await call(url, { method: 'POST', path, headers, body: `id,name\n${body}` })
  assert.equal(JSON.parse(answer.body).stored, names.length)
}

/** How many files and connections the service has open. */
function countFiles({ child }: ServiceProcess): number {
  return readdirSync(`/proc/${child.pid}/fd`).length
}

function readPeakMb({ child }: ServiceProcess): number {
  const status = readFileSync(`/proc/${child.pid}/status`, 'utf8')
  return Math.round(Number(/VmHWM:\s+(\d+)/.exec(status)?.[1]) / 1024)
}
