/**
 * What followers of the journal cost, and how soon they know: the time from a commit to its event,
 * and the CPU time and memory of the service with many followers.
 *
 *   npx node bench/experiments/events.ts [--followers 1000] [--rate 200] [--seconds 5]
 */
import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { Agent, get, request } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { quantile } from '../figures.ts'
import { token } from '../requests.ts'

const { values } = parseArgs({
  options: {
    followers: { type: 'string', default: '1000' },
    rate: { type: 'string', default: '200' },
    seconds: { type: 'string', default: '5' },
  },
})
const program = join(import.meta.dirname, 'service.ts')
const folder = mkdtempSync(join(tmpdir(), 'plant-store-events-'))
const database = `sqlite:${join(folder, 'plants.db')}`
const Authorization = `Bearer ${token}`
const agent = new Agent({ keepAlive: true, maxSockets: 16 })
let lastId = 0

const service = await start()
try {
  const seconds = Number(values.seconds)
  console.log('one follower, 1,000 changes/s', await measure(service, service, 1, 1_000, seconds))
  const other = await start()
  console.log('one of another process', await measure(other, service, 1, 1_000, seconds))
  other.child.kill()
  const [followers, rate] = [Number(values.followers), Number(values.rate)]
  console.log(
    `${followers} followers, ${rate} changes/s`,
    await measure(service, service, followers, rate, seconds),
  )
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

async function start(): Promise<Running> {
  const child = fork(program, [database])
  const askAny = async (question: string) => {
    child.send(question)
    const [answer] = await once(child, 'message')
    return Number(answer)
  }
  return { child, url: `http://127.0.0.1:${await askAny('port')}`, ask: askAny }
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
    Array.from({ length: followers }, () => follow(followed.url, madeAt, delays)),
  )
  const [cpuBefore, startedAt] = [await followed.ask('cpuUs'), performance.now()]
  const changes = rate * seconds
  const creates: Promise<void>[] = []
  for (let made = 0; made < changes; ) {
    const due = Math.min(changes, ((performance.now() - startedAt) * rate) / 1000)
    for (; made < due; made++) creates.push(create(written.url, madeAt))
    await sleep(2)
  }
  await Promise.all(creates)
  const elapsedMs = performance.now() - startedAt
  const cores = (await followed.ask('cpuUs')) - cpuBefore
  for (let look = 0; look < 400 && readers.some(({ seen }) => seen() < changes); look++) {
    await sleep(25)
  }
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
async function follow(url: string, madeAt: ReadonlyMap<string, number>, delays: number[]) {
  const headers = { Authorization, Accept: 'text/event-stream' }
  const sent = get(`${url}/events?after=latest`, { agent: false, headers })
  const [response] = await once(sent, 'response')
  let seen = 0
  response.setEncoding('utf8').on('data', (text: string) => {
    for (const [, id = ''] of text.matchAll(/"id":(\d+),/g)) {
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
