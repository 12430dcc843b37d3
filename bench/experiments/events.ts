/**
 * What the journal and its followers cost, and how soon they know: the time from a commit to its
 * event, the CPU time and memory of the service with many followers, creates beside followers that
 * do not read, and how fast the whole journal is read back. About 4 minutes.
 *
 *   npx node bench/experiments/events.ts [--followers 1000] [--rate 200] [--seconds 5]
 *     [--entries 1000000]
 */
import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { Agent, get, request } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { openStore, toStoreLocation } from '../../src/store/open.ts'
import { issueToken } from '../../src/tokens/issue.ts'
import { median, quantile } from '../figures.ts'
import { token, toNextPath } from '../requests.ts'
import { createPlants } from './creates.ts'

const { values } = parseArgs({
  options: {
    followers: { type: 'string', default: '1000' },
    rate: { type: 'string', default: '200' },
    seconds: { type: 'string', default: '5' },
    entries: { type: 'string', default: '1000000' },
  },
})
const program = join(import.meta.dirname, 'service.ts')
const folder = mkdtempSync(join(tmpdir(), 'plant-store-events-'))
const Authorization = `Bearer ${token}`
const agent = new Agent({ keepAlive: true, maxSockets: 16 })
let lastId = 0
/** How often two things are compared. */
const rounds = 5
/** Services take turns in slices. */
const sliceMs = 150
const slicesOfIdle = 60

/** A token may have a quarter of all streams. */
const followerTokens = await issueTokens('plants.db', 5)
const service = await start('plants.db')
try {
  const seconds = Number(values.seconds)
  console.log('one follower, 1,000 changes/s', await measure(service, service, 1, 1_000, seconds))
  const other = await start('plants.db')
  console.log('one of another process', await measure(other, service, 1, 1_000, seconds))
  other.child.kill()
  const [followers, rate] = [Number(values.followers), Number(values.rate)]
  console.log(
    `${followers} followers, ${rate} changes/s`,
    await measure(service, service, followers, rate, seconds),
  )
  const second = await start('more-plants.db')
  console.log('50 followers that do not read', await measureIdle(service, second, 50))
  second.child.kill()
  console.log('the journal read back', await readBack(service.url, Number(values.entries)))
} finally {
  service.child.kill()
  agent.destroy()
  rmSync(folder, { recursive: true })
}
process.exit()

interface Running {
  readonly child: ChildProcess
  readonly url: string
  ask(question: 'cpuUs' | 'rssMb'): Promise<number>
}

async function start(file: string): Promise<Running> {
  const child = fork(program, [`sqlite:${join(folder, file)}`])
  const askAny = async (question: string) => {
    child.send(question)
    const [answer] = await once(child, 'message')
    return Number(answer)
  }
  return { child, url: `http://127.0.0.1:${await askAny('port')}`, ask: askAny }
}

async function issueTokens(file: string, count: number): Promise<string[]> {
  const location = toStoreLocation(`sqlite:${join(folder, file)}`)
  if (location === undefined) throw new Error(`${file} is no store`)
  const store = await openStore(location)
  const request = { name: 'follower', scopes: ['plants:read'] as const, lifetimeMs: undefined }
  const issued = await Promise.all(Array.from({ length: count }, () => issueToken(store, request)))
  await store.close()
  return issued.map((one) => one.token)
}

/** Follows one service, writes to another, and tells what came, when, and at which cost. */
async function measure(
  followed: Running,
  written: Running,
  followers: number,
  rate: number,
  seconds: number,
) {
  const madeAt = new Map<string, number>()
  const delays: number[] = []
  const rssBefore = await followed.ask('rssMb')
  const readers = await Promise.all(
    Array.from({ length: followers }, (_, index) =>
      follow(followed.url, followerTokens[index % followerTokens.length] ?? '', madeAt, delays),
    ),
  )

  async function createAtRate(count: number): Promise<void> {
    const startedAt = performance.now()
    const creates: Promise<void>[] = []
    for (let made = 0; made < count; ) {
      const due = Math.min(count, ((performance.now() - startedAt) * rate) / 1000)
      for (; made < due; made++) creates.push(create(written.url, madeAt))
      await sleep(2)
    }
    await Promise.all(creates)
  }

  async function waitForAll(count: number): Promise<void> {
    for (let look = 0; look < 400 && readers.some(({ seen }) => seen() < count); look++) {
      await sleep(25)
    }
  }

  // In the first second, both processes compile their code.
  await createAtRate(rate)
  await waitForAll(rate)
  delays.length = 0
  const [cpuBefore, startedAt] = [await followed.ask('cpuUs'), performance.now()]
  await createAtRate(rate * seconds)
  const elapsedMs = performance.now() - startedAt
  const cores = (await followed.ask('cpuUs')) - cpuBefore
  const changes = rate + rate * seconds
  await waitForAll(changes)
  const received = readers.map(({ seen }) => seen())
  const rssMb = (await followed.ask('rssMb')) - rssBefore
  for (const { stop } of readers) stop()
  return {
    changes,
    leastReceived: Math.min(...received),
    mostReceived: Math.max(...received),
    p50Ms: Number(quantile(delays, 0.5).toFixed(1)),
    p99Ms: Number(quantile(delays, 0.99).toFixed(1)),
    cores: Number((cores / 1000 / elapsedMs).toFixed(2)),
    rssMb: Math.round(rssMb),
  }
}

/** A follower that counts events, and notes the delay from the answer to the create. */
async function follow(
  url: string,
  ownToken: string,
  madeAt: ReadonlyMap<string, number>,
  delays: number[],
) {
  const headers = { Authorization: `Bearer ${ownToken}`, Accept: 'text/event-stream' }
  const sent = get(`${url}/events?after=latest`, { agent: false, headers })
  const [response] = await once(sent, 'response')
  let seen = 0
  let rest = ''
  response.setEncoding('utf8').on('data', (text: string) => {
    const events = (rest + text).split('\n\n')
    rest = events.pop() as string
    for (const event of events) {
      const [, id] = /"id":(\d+),/.exec(event) ?? []
      // The beginning of a stream and comments are no changes.
      if (id === undefined) continue
      seen++
      delays.push(Math.max(0, performance.now() - (madeAt.get(id) ?? performance.now())))
    }
  })
  response.on('error', () => {})
  await once(response, 'data')
  return { seen: () => seen, stop: () => sent.destroy() }
}

function create(url: string, madeAt: Map<string, number>): Promise<void> {
  const id = ++lastId
  const headers = { Authorization, 'Content-Type': 'application/json' }
  return new Promise((resolve, reject) => {
    const sent = request(`${url}/plants`, { method: 'POST', agent, headers }, (answer) => {
      madeAt.set(String(id), performance.now())
      answer.resume().on('end', resolve)
    })
    sent.on('error', reject)
    sent.end(`{"id":${id},"name":"Monstera deliciosa"}`)
  })
}

/**
 * Creates on a service to which followers come that never read, against creates on another: until
 * all of them are cut, and in 9 s from their coming. The services change roles after each round.
 */
async function measureIdle(one: Running, two: Running, count: number) {
  const nextId = () => ++lastId
  let cut = 0

  async function createAwhile({ url, ask }: Running, sum: Sum) {
    const port = Number(new URL(url).port)
    const cpuBefore = await ask('cpuUs')
    const { stored } = await createPlants(port, nextId, { connections: 64, forMs: sliceMs })
    sum.stored += stored
    sum.cpuUs += (await ask('cpuUs')) - cpuBefore
  }

  async function runRound(followed: Running, other: Running) {
    for (let opened = 0; opened < count; opened++) await openIdle(followed.url)
    const beside = { stored: 0, cpuUs: 0 }
    const alone = { stored: 0, cpuUs: 0 }
    let left = count
    let untilCut: ReturnType<typeof compare> | undefined
    for (let slice = 0; slice < slicesOfIdle; slice++) {
      await createAwhile(followed, beside)
      await createAwhile(other, alone)
      if (left > 0) left = await countFollowers(followed.url)
      if (left === 0) untilCut ??= compare(beside, alone)
    }
    cut += count - left
    return { inAll: compare(beside, alone), untilCut: untilCut ?? compare(beside, alone) }
  }

  const results: Awaited<ReturnType<typeof runRound>>[] = []
  for (let round = 0; round < 6; round++) {
    results.push(await (round % 2 === 0 ? runRound(one, two) : runRound(two, one)))
  }
  // The first round of each service compiles its code.
  const measured = results.slice(2)
  const toMedian = (pick: (result: (typeof results)[number]) => number) =>
    median(measured.map(pick)).toFixed(2)
  return {
    opened: results.length * count,
    cut,
    creates: toMedian(({ inAll }) => inAll.creates),
    cpuOfACreate: toMedian(({ inAll }) => inAll.cpu),
    createsUntilCut: toMedian(({ untilCut }) => untilCut.creates),
    cpuOfACreateUntilCut: toMedian(({ untilCut }) => untilCut.cpu),
  }
}

/** Creates of several slices, and the CPU time of the service meanwhile. */
interface Sum {
  stored: number
  cpuUs: number
}

function compare(beside: Sum, alone: Sum) {
  const creates = beside.stored / alone.stored
  return { creates, cpu: beside.cpuUs / alone.cpuUs / creates }
}

async function openIdle(url: string): Promise<void> {
  const headers = { Authorization, Accept: 'text/event-stream' }
  const sent = get(`${url}/events?after=latest`, { agent: false, headers })
  const [response] = await once(sent, 'response')
  response.on('error', () => {})
}

/** The service knows: a client that does not read does not notice that it was cut. */
async function countFollowers(url: string): Promise<number> {
  const text = await (await fetch(`${url}/metrics`, { headers: { Authorization } })).text()
  return Number(/requests_in_flight\{operation="listEvents"\} (\d+)/.exec(text)?.[1])
}

/** Reads the journal of an import in pages of 1,000, in turn with an export of as many plants. */
async function readBack(url: string, entries: number) {
  const first = await readAll(`${url}/events?after=latest`)
  const begin = toNextPath(first.link) ?? ''
  await importPlants(`${url}/plants.ndjson`, entries)
  const exports: number[] = []
  const reads: number[] = []
  const drifts: number[] = []
  for (let round = 0; round < rounds; round++) {
    const { ms, bytes } = await readAll(`${url}/plants.ndjson?after=${1_000_000_000}`)
    if (bytes < entries) throw new Error('the export is too short')
    exports.push(entries / ms)
    const times: number[] = []
    let path = begin.replace(/limit=\d+/, 'limit=1000')
    for (let read = 0; read < entries; read += 1_000) {
      const page = await readAll(url + path)
      times.push(page.ms)
      path = toNextPath(page.link) ?? ''
    }
    reads.push(entries / times.reduce((sum, time) => sum + time, 0))
    const tenth = Math.ceil(times.length / 10)
    drifts.push(median(times.slice(-tenth)) / median(times.slice(0, tenth)))
  }
  return {
    entries,
    readPerSecond: Math.round(median(reads) * 1_000),
    exportedPerSecond: Math.round(median(exports) * 1_000),
    ratio: median(reads.map((rate, round) => rate / (exports[round] ?? 0))).toFixed(2),
    lastPagesToFirst: median(drifts).toFixed(2),
  }
}

async function readAll(url: string) {
  const startedAt = performance.now()
  const [response] = await once(get(url, { agent, headers: { Authorization } }), 'response')
  let bytes = 0
  for await (const chunk of response) bytes += chunk.length
  if (response.statusCode !== 200) throw new Error(`${url} answered ${response.statusCode}`)
  return { bytes, link: response.headers.link, ms: performance.now() - startedAt }
}

async function importPlants(url: string, count: number): Promise<void> {
  const headers = { Authorization, 'Content-Type': 'application/x-ndjson' }
  const sent = request(url, { method: 'POST', agent, headers })
  for (let made = 0; made < count; made += 1_000) {
    const lines = Array.from({ length: Math.min(1_000, count - made) }, (_, index) => {
      return `{"id":${1_000_000_001 + made + index},"name":"Monstera deliciosa","tag":"indoor"}\n`
    })
    if (!sent.write(lines.join(''))) await once(sent, 'drain')
  }
  sent.end()
  const [response] = await once(sent, 'response')
  if (response.statusCode !== 200) throw new Error(`the import answered ${response.statusCode}`)
  response.resume()
  await once(response, 'end')
}
