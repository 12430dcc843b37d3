/**
 * Attacks on a service, beside a client with a valid token: how long its requests take. Service,
 * attacker and client are processes of their own. The control is the same number of connections
 * that only ask for a plant without a token, in the same run. About two minutes on idle cores; with
 * `--long`, every attack with each number of connections, in about a quarter of an hour.
 *
 *   npx node bench/attacks.ts [--long] [--only <part of a title>]
 */
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { Agent, request } from 'node:http'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { setTimeout as sleep } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { openStore, type StoreLocation, toStoreLocation } from '../src/store/open.ts'
import { issueToken } from '../src/tokens/issue.ts'
import { newKey, startIssuer } from '../test/support/issuer.ts'
import { type Attack, attacks, bearer, control, json, type Tokens } from './attacker.ts'
import { readRss } from './cpu.ts'
import { median } from './figures.ts'
import { openLab, type Server } from './lab.ts'
import { token as ownToken } from './requests.ts'
import { toTable } from './section.ts'
import { servePlantStore } from './serve.ts'

const counts = [500, 1_500, 5_000]
/** The bounds on each median, a multiple of the control or a time, and on the memory. */
const maxRatio = 3
const enoughMs = 20
const maxMb = 400
const plants = 40_000
const settleMs = 300
const minLoops = 5
const attackerPath = join(import.meta.dirname, 'attacker.ts')

await measureAll()

async function measureAll(): Promise<void> {
  const { values } = parseArgs({
    options: { long: { type: 'boolean' }, only: { type: 'string', default: '' } },
  })
  const forMs = values.long ? 10_000 : 700
  const lab = openLab('short', () => {})
  const url = `sqlite:${join(lab.folder, 'plants.db')}`
  const key = await newKey('ES256')
  const issuer = await startIssuer([key])
  const tokens = {
    stored: await issueStored(url),
    web: await Promise.all(Array.from({ length: 100 }, (_, jti) => issuer.sign(key, { jti }))),
  }
  const service = await servePlantStore(lab, url, { env: issuer.env })
  const lines = Array.from({ length: plants }, (_, id) => `{"id":${id},"name":"${'x'.repeat(60)}"}`)
  await send(service.port, 'POST', '/plants.ndjson', {
    type: 'application/x-ndjson',
    body: lines.join('\n'),
  })
  const rows: string[][] = []
  let missed = 0
  for (const count of counts) {
    const own = await measureBeside(service, control, count, tokens, forMs)
    rows.push(toRow(control.title, count, own, ''))
    for (const attack of attacks) {
      const isShort = attack.isVaried || count === attack.connections || count === 1_500
      const isOnce = attack.connections !== undefined && count !== 1_500
      if (isOnce || !(values.long || isShort) || !attack.title.includes(values.only)) continue
      const used = attack.connections ?? count
      const found = await measureBeside(service, attack, used, tokens, forMs)
      const verdict = toVerdict(found, own)
      if (verdict !== '') missed++
      rows.push(toRow(attack.title, used, found, verdict))
    }
  }
  const head = ['beside', 'connections', 'get', 'put', 'new /healthz', 'memory', '']
  console.log(toTable(head, rows))
  console.log('Medians in ms of a client with a valid token; memory of the service in MB.')
  console.log(missed === 0 ? 'Everything as wanted.' : `Missed: ${missed}`)
  await lab.close()
  process.exit(missed === 0 ? 0 : 1)
}

async function issueStored(url: string): Promise<string> {
  const store = await openStore(toStoreLocation(url) as StoreLocation)
  const scopes = ['plants:read', 'plants:write'] as const
  const { token } = await issueToken(store, { name: 'attacker', scopes, lifetimeMs: undefined })
  await store.close()
  return token
}

/** Medians in ms, and the memory of the service. */
interface Found {
  readonly times: readonly number[]
  readonly mb: number
}

async function measureBeside(
  service: Server,
  attack: Attack,
  count: number,
  tokens: Tokens,
  forMs: number,
): Promise<Found> {
  const child = fork(attackerPath, [attack.title, String(service.port), String(count)])
  child.send(tokens)
  await once(child, 'message')
  await sleep(settleMs)
  const times = await measureClient(service.port, forMs)
  const mb = readRss(service.pid)
  child.kill('SIGKILL')
  await once(child, 'exit')
  // The service closes the connections of the attack.
  await send(service.port, 'GET', '/healthz')
  await sleep(settleMs)
  return { times, mb }
}

/** Gets, replaces and asks for the health in turn, the last on a new connection each time. */
async function measureClient(port: number, forMs: number): Promise<number[]> {
  const agent = new Agent({ keepAlive: true, maxSockets: 1 })
  const found: [number[], number[], number[]] = [[], [], []]
  const put = { type: json['Content-Type'], body: '{"name":"x"}', agent }
  await send(port, 'GET', '/plants/2', { agent })
  const endsAt = performance.now() + forMs
  do {
    const steps = [
      () => send(port, 'GET', '/plants/2', { agent }),
      () => send(port, 'PUT', '/plants/3', put),
      () => send(port, 'GET', '/healthz'),
    ]
    for (const [at, step] of steps.entries()) {
      const sentAt = performance.now()
      await step()
      found[at]?.push(performance.now() - sentAt)
    }
  } while (performance.now() < endsAt || found[0].length < minLoops)
  agent.destroy()
  return found.map(median)
}

type Sent = Readonly<Partial<{ type: string; body: string; agent: Agent }>>

async function send(port: number, method: string, path: string, sent: Sent = {}): Promise<void> {
  const { type, body = '', agent = false } = sent
  const headers = { ...bearer(ownToken), ...(type && { 'Content-Type': type }) }
  const asked = request({ port, path, method, headers, agent }).end(body)
  const [answer] = await once(asked, 'response')
  const received = await text(answer)
  if (answer.statusCode >= 300) throw new Error(`${method} ${path}: ${received}`)
}

function toVerdict({ times, mb }: Found, own: Found): string {
  const isSlow = times.some((ms, at) => ms > Math.max(enoughMs, maxRatio * (own.times[at] ?? 0)))
  return isSlow || mb > maxMb ? 'missed' : ''
}

/** The figures of an attack, which are shown at once: the next ones may take long. */
function toRow(title: string, count: number, { times, mb }: Found, verdict: string): string[] {
  const figures = [...times.map((ms) => ms.toFixed(1)), mb.toFixed(0)]
  const row = [title, count.toLocaleString('en'), ...figures, verdict]
  console.error(row.join('  '))
  return row
}
