import assert from 'node:assert/strict'
import { readdirSync, readFileSync } from 'node:fs'
import type { Socket } from 'node:net'
import { join } from 'node:path'
import { before, describe, it } from 'node:test'
import { fileURLToPath } from 'node:url'
import { limits } from '../../src/contract/limits.ts'
import type { NewPlant } from '../../src/contract/shapes.ts'
import { newFolder } from '../support/folder.ts'
import { openSqliteStore } from '../support/stores.ts'
import { waitUntil } from '../support/wait.ts'
import { call, openSocket } from '../support/wire.ts'
import { startClients } from './lab/probe.ts'
import { isLong, scale } from './lab/scale.ts'
import { type ServiceProcess, startProcess, token } from './lab/service-process.ts'

const program = fileURLToPath(new URL('../../bin/plant-store.js', import.meta.url))
const connections = scale(100, 1_000)
const attackers = scale(12, 1_000)
/** How many others are connected before, and send one get after the other. */
const clients = 20
const headers = { Authorization: `Bearer ${token}` }
const authorization = `Authorization: Bearer ${token}\r\n`
const postHead = `POST /plants HTTP/1.1\r\nHost: a\r\n${authorization}Content-Type: application/json\r\n`
const importHead = `POST /plants.ndjson HTTP/1.1\r\nHost: a\r\n${authorization}Content-Type: application/x-ndjson\r\n`
const chunked = 'Transfer-Encoding: chunked\r\n\r\n'

/** Bodies of nearly the largest size, in which each element would take far more as a value. */
const dearBodies = [
  '{"1023":0}',
  '{"\\n":0,"\\r":0}',
  '1e999999999',
  `${'{"a":'.repeat(limits.jsonDepth - 2)}0${'}'.repeat(limits.jsonDepth - 2)}`,
].map((element) => {
  const count = Math.floor((limits.bodyBytes - 30) / (element.length + 1))
  return `{"id":1,"name":"x","a":[${Array(count).fill(element).join(',')}]}`
})

interface Attack {
  readonly title: string
  readonly behave: (socket: Socket) => void
  /** In the long form; otherwise as many as of the others. */
  readonly count?: number
  /** Whether the service closes the connections, with its real limits. */
  readonly isCut?: true
}

/** What each of many connections does, all at once. */
const attacks: readonly Attack[] = [
  {
    title: 'bodies that are dear as values, again and again',
    behave(socket) {
      let sent = 0
      const create = () => {
        const body = dearBodies[sent++ % dearBodies.length] ?? ''
        socket.write(`${postHead}Content-Length: ${body.length}\r\n\r\n${body}`)
      }
      socket.on('data', create)
      create()
    },
  },
  {
    title: 'requests that are pipelined without a token, and never read',
    behave(socket) {
      socket.pause()
      socket.write('GET /docs HTTP/1.1\r\nHost: a\r\n\r\n'.repeat(2_000))
    },
  },
  ...[postHead, importHead].map((head) => ({
    title: `bodies in chunks of one byte for ${head.split(' ', 2)[1]}`,
    behave(socket: Socket) {
      socket.resume()
      socket.write(`${head}${chunked}`)
      const bytes = Buffer.from('1\r\n \r\n'.repeat(100))
      const timer = setInterval(() => socket.write(bytes), 200)
      socket.on('close', () => clearInterval(timer))
    },
  })),
  {
    title: 'heads that trickle',
    behave: (socket) => drip(socket, `${postHead}X-Slow: a`),
    isCut: true,
  },
  {
    title: 'bodies that trickle',
    behave: (socket) => drip(socket, `${postHead}Content-Length: 8000\r\n\r\n{"`),
    isCut: true,
  },
  {
    title: 'large answers that are never read',
    behave(socket) {
      socket.pause()
      socket.write(`GET /plants/-1 HTTP/1.1\r\nHost: a\r\n${authorization}\r\n`.repeat(8))
      // A paused connection does not see its end, but a write fails then.
      const timer = setInterval(() => socket.write(' '), 1_000)
      socket.on('close', () => clearInterval(timer))
    },
    isCut: true,
  },
  { title: 'nothing to say', behave: (socket) => socket.resume(), count: 10_000 },
]

describe('a service with a heap of 256 MB', () => {
  let service: ServiceProcess
  before(async () => {
    // A large plant, to read slowly: an earlier release has stored it.
    const large = { id: -1n, name: 'x'.repeat(1_000_000) }
    service = await startProcess({
      database: await newStore([large, { id: 0n, name: 'x' }]),
      command: ['--max-old-space-size=256', program, 'serve'],
    })
  })

  for (const { title, behave, count = attackers, isCut } of attacks) {
    it(`serves others beside connections with ${title}`, async (t) => {
      const probe = startClients(clients, `${service.url}/plants/0`, headers)
      await waitUntil(() => probe.served() >= clients, 'they are connected')
      const crowd = await gather(service.url, isLong ? count : attackers, behave)
      const attackedFrom = probe.served()
      const served = clients * scale(10, 300)
      await waitUntil(() => probe.served() >= attackedFrom + served, 'others are served')
      // The limits of a service in the process of a test are shorter: see test/http.
      if (isCut && isLong) t.diagnostic(`all are closed after ${await crowd.closed} ms`)
      t.diagnostic(`${await probe.stop()}; memory ${readPeakMb(service)} MB at most`)
      // On a busy machine, a burst may take longer than a request may wait.
      const others = probe.others()
      assert.ok(others.every((status) => status === 503) && others.length < served / 4, `${others}`)
      assert.equal(service.child.exitCode, null)
    })
  }
})

it(`a new connection gets its turn beside ${connections} that ask for dear pages at once`, async (t) => {
  const service = await startProcess({ database: await newStore(toPlants(1_000, 900)) })
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

/** Each connection asks this often. All of them may take this much memory. */
const unread = [
  {
    title: 'pages',
    plants: toPlants(150, 8_000),
    path: '/plants?limit=1000',
    sockets: scale(200, 800),
    requests: 6,
    mb: 200,
  },
  {
    title: 'plants of six megabytes, which earlier releases stored',
    plants: [{ id: 0n, name: '\u0001'.repeat(1_000_000) }],
    path: '/plants/0',
    sockets: scale(70, 300),
    requests: 1,
    mb: 350,
  },
  {
    // They share it: a copy for each would be 200 KB.
    title: 'the document',
    plants: [],
    path: '/openapi.json',
    sockets: scale(300, 3_000),
    requests: 20,
    mb: 30 + scale(300, 3_000) * 0.05,
  },
]

describe('answers that are not read', () => {
  for (const { title, plants, path, sockets, requests, mb } of unread) {
    it(`hold a bounded amount of memory over all connections: ${title}`, async (t) => {
      const service = await startProcess({ database: await newStore(plants) })
      if (plants.length === 0) await call(service.url, { path })
      const before = readPeakMb(service)
      const get = `GET ${path} HTTP/1.1\r\nHost: localhost\r\n${authorization}\r\n`
      await gather(service.url, sockets, (socket) => {
        socket.pause()
        socket.write(get.repeat(requests))
      })
      // Requests of one token begin in the order in which they come. This one may be too late.
      const { status } = await call(service.url, { path: '/plants', headers })
      assert.ok([200, 503].includes(status), String(status))
      const grown = readPeakMb(service) - before
      t.diagnostic(`memory ${before} MB, and ${grown} MB more at most`)
      assert.ok(grown < mb, `${grown} MB more`)
    })
  }

  it('are cut where they are streams of events as well', async () => {
    const service = await startProcess({ database: await newStore(toPlants(2_000, 8_000)) })
    const get = `GET /events HTTP/1.1\r\nHost: a\r\n${authorization}Accept: text/event-stream\r\n\r\n`
    const filesBefore = countFiles(service)
    let begun = 0
    await gather(service.url, 200, (socket) => {
      socket.once('data', () => {
        socket.pause()
        begun++
      })
      socket.write(get)
    })
    await waitUntil(() => begun === 200, 'all streams have begun')
    const countOpen = () => countFiles(service) - filesBefore
    // Each has a page of a megabyte that waits.
    const enough = limits.unreadBytes / limits.pageBytes
    await waitUntil(() => countOpen() <= enough, 'streams are cut')
    // The limit on the time without reading would have cut all.
    assert.ok(countOpen() > enough / 4, `${countOpen()} connections are open`)
  })
})

function toPlants(count: number, length: number) {
  return Array.from({ length: count }, (_, id) => ({ id: BigInt(id), name: 'x'.repeat(length) }))
}

/** Makes a store of these plants. */
async function newStore(plants: readonly NewPlant[]): Promise<string> {
  const path = join(newFolder(), 'plants.db')
  const store = openSqliteStore(path)
  for (let at = 0; at < plants.length; at += 100) {
    await store.importPlants(plants.slice(at, at + 100), 'keep')
  }
  await store.close()
  return `sqlite:${path}`
}

/** How many files and connections the service has open. */
function countFiles({ child }: ServiceProcess): number {
  return readdirSync(`/proc/${child.pid}/fd`).length
}

function readPeakMb({ child }: ServiceProcess): number {
  const status = readFileSync(`/proc/${child.pid}/status`, 'utf8')
  return Math.round(Number(/VmHWM:\s+(\d+)/.exec(status)?.[1]) / 1024)
}

/** Opens connections, a hundred at a time, and lets each behave. They end with the test. */
async function gather(url: string, count: number, behave: (socket: Socket) => void) {
  const sockets = new Set<Socket>()
  const startedAt = performance.now()
  const closed = Promise.withResolvers<number>()

  function open(): Promise<void> {
    return new Promise((resolve, reject) => {
      const socket = openSocket(url)
      sockets.add(socket)
      socket.once('error', reject)
      socket.once('connect', () => {
        behave(socket)
        resolve()
      })
      socket.once('close', () => {
        sockets.delete(socket)
        if (sockets.size === 0) closed.resolve(performance.now() - startedAt)
      })
    })
  }

  for (let opened = 0; opened < count; opened += 100) {
    await Promise.all(Array.from({ length: Math.min(100, count - opened) }, open))
  }
  return {
    /** Resolves when the service has closed them all, with the time that this took. */
    closed: closed.promise,
  }
}

/** Writes a byte every second until the connection is closed. */
function drip(socket: Socket, start: string): void {
  socket.write(start)
  socket.resume()
  const timer = setInterval(() => socket.write('a'), 1_000)
  socket.on('close', () => clearInterval(timer))
}
