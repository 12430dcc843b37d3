/**
 * Followers of the journal on SQLite. First 1,000 at once beside 200 changes a second: whether each
 * received every change once and in one order, how soon, and at which cost. Then creates beside 100
 * followers that are a million changes behind. Service, followers and writer are processes of their
 * own. About a minute.
 *
 *   npx node bench/followers.ts [--followers 1000] [--rate 200] [--seconds 10] [--behind 1000000]
 */
import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { Agent, get, request } from 'node:http'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { openStore, type StoreLocation, toStoreLocation } from '../src/store/open.ts'
import { issueToken } from '../src/tokens/issue.ts'
import { cpuBetween, readCpu, readRss } from './cpu.ts'
import { quantile } from './figures.ts'
import { openLab, type Server } from './lab.ts'
import { token } from './requests.ts'
import { servePlantStore } from './serve.ts'

/** A token may have a quarter of all streams. */
const tokensNeeded = 4
const late = { followers: 100, rate: 100, seconds: 5 }
const json = 'application/json'
const agent = new Agent({ keepAlive: true })
let lastId = 0

/** What the process of the followers is asked for. */
interface Follow {
  readonly port: number
  readonly path: string
  readonly tokens: readonly string[]
  readonly count: number
}

/** What the followers have received so far. */
interface Received {
  readonly least: number
  readonly most: number
  /** Whether all received the same changes in the same order, none of them twice. */
  readonly isAgreed: boolean
  readonly delaysMs: readonly number[]
}

if (process.send === undefined) await measureAll()
else process.once('message', follow)

async function measureAll(): Promise<void> {
  const { values } = parseArgs({
    options: {
      followers: { type: 'string', default: '1000' },
      rate: { type: 'string', default: '200' },
      seconds: { type: 'string', default: '10' },
      behind: { type: 'string', default: '1000000' },
    },
  })
  const lab = openLab('short', () => {})
  const url = `sqlite:${join(lab.folder, 'plants.db')}`
  const tokens = await fill(url, Number(values.behind))
  const service = await servePlantStore(lab, url)
  const [count, rate] = [Number(values.followers), Number(values.rate)]
  console.log(`${count} followers, ${rate} changes/s`)
  console.log(await measureFollowers(service, tokens, { count, rate, seconds: +values.seconds }))
  console.log(`creates in ms, alone and beside ${late.followers}, ${values.behind} changes behind`)
  console.log(await measureBehind(service, tokens))
  await lab.close()
  process.exit()
}

async function fill(url: string, count: number): Promise<string[]> {
  const store = await openStore(toStoreLocation(url) as StoreLocation)
  for (let id = 0; id < count; id += 1_000) {
    const plants = Array.from({ length: 1_000 }, (_, at) => ({ id: BigInt(-id - at), name: 'old' }))
    await store.importPlants(plants, 'keep')
  }
  const wanted = { name: 'follower', scopes: ['plants:read'] as const, lifetimeMs: undefined }
  const issued = Array.from({ length: tokensNeeded }, () => issueToken(store, wanted))
  const tokens = (await Promise.all(issued)).map((one) => one.token)
  await store.close()
  return tokens
}

async function measureFollowers(
  service: Server,
  tokens: readonly string[],
  { count, rate, seconds }: { count: number; rate: number; seconds: number },
) {
  const rssBefore = readRss(service.pid)
  const { child, ask } = await startFollowers(service, tokens, count, '/events?after=latest')
  // In the first second, the processes compile their code.
  await createAtRate(service.port, rate, 1)
  await sleep(1_000)
  await ask()
  const [cpuBefore, startedAt] = [readCpu([service.pid]), performance.now()]
  await createAtRate(service.port, rate, seconds)
  const cpuMs = cpuBetween(cpuBefore, readCpu([service.pid]))
  const cores = cpuMs / (performance.now() - startedAt)
  await sleep(2_000)
  const { delaysMs, ...received } = await ask()
  const rssMb = readRss(service.pid) - rssBefore
  child.kill()
  return {
    changes: rate * (1 + seconds),
    ...received,
    p50Ms: Number(quantile(delaysMs, 0.5).toFixed(1)),
    p99Ms: Number(quantile(delaysMs, 0.99).toFixed(1)),
    cores: Number(cores.toFixed(2)),
    rssMb: Math.round(rssMb),
  }
}

async function measureBehind(service: Server, tokens: readonly string[]) {
  const { rate, seconds, followers } = late
  const alone = await createAtRate(service.port, rate, seconds)
  const { child } = await startFollowers(service, tokens, followers, '/events')
  const beside = await createAtRate(service.port, rate, seconds)
  child.kill()
  const describe = (times: readonly number[]) =>
    `p50 ${quantile(times, 0.5).toFixed(1)}, p99 ${quantile(times, 0.99).toFixed(1)}`
  return { alone: describe(alone), beside: describe(beside) }
}

async function startFollowers(
  { port }: Server,
  tokens: readonly string[],
  count: number,
  path: string,
): Promise<{ child: ChildProcess; ask: () => Promise<Received> }> {
  const child = fork(import.meta.filename, { serialization: 'advanced' })
  child.send({ port, path, tokens, count } satisfies Follow)
  await once(child, 'message')
  const ask = async () => {
    child.send('received')
    const [received] = await once(child, 'message')
    return received as Received
  }
  return { child, ask }
}

/** Creates plants at a rate; returns how long each took. A plant has the time as its name. */
async function createAtRate(port: number, rate: number, seconds: number): Promise<number[]> {
  const startedAt = performance.now()
  const creates: Promise<number>[] = []
  while (creates.length < rate * seconds) {
    const due = ((performance.now() - startedAt) * rate) / 1_000
    while (creates.length < Math.min(due, rate * seconds)) creates.push(create(port))
    await sleep(2)
  }
  return Promise.all(creates)
}

async function create(port: number): Promise<number> {
  const sentAt = performance.now()
  const headers = { Authorization: `Bearer ${token}`, 'Content-Type': json }
  const sent = request({ port, path: '/plants', method: 'POST', agent, headers })
  sent.end(`{"id":${++lastId},"name":"${performance.timeOrigin + sentAt}"}`)
  const [answer] = await once(sent, 'response')
  if (answer.statusCode !== 200) throw new Error(`a create was answered ${answer.statusCode}`)
  await once(answer.resume(), 'end')
  return performance.now() - sentAt
}

/** The process of the followers: each notes what came, and when. */
async function follow(message: unknown): Promise<void> {
  const { port, path, tokens, count } = message as Follow
  const followers = Array.from({ length: count }, () => ({ seen: 0, order: 0 }))
  const ids = new Set<string>()
  let delaysMs: number[] = []

  async function open(at: number): Promise<void> {
    const follower = followers[at] as (typeof followers)[number]
    const own = `Bearer ${tokens[at % tokens.length]}`
    const headers = { Authorization: own, Accept: 'text/event-stream' }
    const [answer] = await once(get({ port, path, agent: false, headers }), 'response')
    if (answer.statusCode !== 200) throw new Error(`a follower was answered ${answer.statusCode}`)
    let rest = ''
    answer.setEncoding('utf8').on('data', (text: string) => {
      const now = performance.timeOrigin + performance.now()
      const events = (rest + text).split('\n\n')
      rest = events.pop() as string
      for (const event of events) {
        const [, id, madeAt] = /"id":(\d+),"name":"([\d.]+)"/.exec(event) ?? []
        // The beginning of a stream, comments and old plants are not counted.
        if (id === undefined) continue
        follower.seen++
        follower.order = (follower.order * 31 + Number(id)) | 0
        ids.add(id)
        delaysMs.push(now - Number(madeAt))
      }
    })
    await once(answer, 'data')
  }

  await Promise.all(followers.map((_, at) => open(at)))
  process.send?.('open')
  process.on('message', () => {
    const seen = followers.map((follower) => follower.seen)
    const orders = new Set(followers.map((follower) => follower.order))
    const [least, most] = [Math.min(...seen), Math.max(...seen)]
    const isAgreed = orders.size === 1 && ids.size === most
    process.send?.({ least, most, isAgreed, delaysMs } satisfies Received)
    delaysMs = []
  })
}
