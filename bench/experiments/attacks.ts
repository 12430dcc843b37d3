/**
 * The wait of others beside one token that takes what it can: a client replaces plants, one after
 * another, beside followers of the whole journal, expensive pages, and imports of refused lines.
 *
 *   npx node bench/experiments/attacks.ts
 */
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { Agent, request } from 'node:http'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { setTimeout as sleep } from 'node:timers/promises'
import { openStore, type StoreLocation, toStoreLocation } from '../../src/store/open.ts'
import { issueToken } from '../../src/tokens/issue.ts'
import { quantile } from '../figures.ts'
import { token } from '../requests.ts'
import { forkService } from './fork-service.ts'

const plants = 40_000
const forMs = 4_000
const connections = 100
/** A token may have two imports at once. */
const imports = 2
const lines: Record<string, string> = {
  'NDJSON, x': 'x\n',
  'CSV, open quotes': '"\n',
  'CSV, commas': ',,,\n',
  'CSV, empty lines': '\n',
  'CSV, quotes': '""""\n',
}
const attacks = ['followers', 'pages', ...Object.keys(lines)]

const [attack, port = '', attacker = ''] = process.argv.slice(2)
if (attack === undefined) await measureAll()
else start(attack, Number(port), attacker)

async function measureAll(): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'plant-store-bench-'))
  const url = `sqlite:${join(folder, 'plants.db')}`
  const store = await openStore(toStoreLocation(url) as StoreLocation)
  const scopes = ['plants:read', 'plants:write'] as const
  const issued = await issueToken(store, { name: 'attacker', scopes, lifetimeMs: undefined })
  await store.close()
  const service = await forkService(url)
  const names = Array.from({ length: plants }, (_, id) => `{"id":${id},"name":"${'x'.repeat(60)}"}`)
  await send(service.port, token, '/plants.ndjson', 'application/x-ndjson', names.join('\n'))
  console.log('   p50     p99   beside')
  for (const beside of ['nobody', ...attacks]) {
    const child =
      beside === 'nobody'
        ? undefined
        : fork(import.meta.filename, [beside, String(service.port), issued.token])
    const times = await measure(service.port)
    const [p50, p99] = [0.5, 0.99].map((part) => quantile(times, part).toFixed(1).padStart(6))
    console.log(`${p50}  ${p99} ms ${beside}`)
    child?.kill()
    if (child) await once(child, 'exit')
  }
  service.kill()
  rmSync(folder, { recursive: true })
  process.exit()
}

/** The times in ms of replaces, one after another on one connection. */
async function measure(port: number): Promise<number[]> {
  const agent = new Agent({ keepAlive: true, maxSockets: 1 })
  const times: number[] = []
  const end = performance.now() + forMs
  for (let id = 0; performance.now() < end; id++) {
    const sentAt = performance.now()
    const path = `/plants/${id % 1_000}`
    await send(port, token, path, 'application/json', `{"name":"${id}"}`, { agent, method: 'PUT' })
    times.push(performance.now() - sentAt)
  }
  agent.destroy()
  return times
}

async function send(
  port: number,
  bearer: string,
  path: string,
  type: string,
  body: string,
  options: { agent?: Agent; method?: string } = {},
): Promise<void> {
  const headers = { authorization: `Bearer ${bearer}`, 'content-type': type }
  const sent = request({ port, path, method: 'POST', headers, ...options }).end(body)
  const [answer] = await once(sent, 'response')
  const received = await text(answer)
  if (answer.statusCode >= 300) throw new Error(received)
}

function start(attack: string, port: number, bearer: string): void {
  const line = lines[attack]
  if (line !== undefined) for (let count = 0; count < imports; count++) void sendOn(attack, line)
  else for (let count = 0; count < connections; count++) openReader()

  async function sendOn(attack: string, line: string): Promise<void> {
    const [path, type, head] = attack.startsWith('CSV')
      ? ['/plants.csv', 'text/csv', 'id,name,tag\n']
      : ['/plants.ndjson', 'application/x-ndjson', '']
    const body = head + line.repeat(2 ** 20 / line.length)
    // Refused while the imports of the attack before have not ended.
    for (;;) await send(port, bearer, path, type, body).catch(() => sleep(100))
  }

  function openReader(): void {
    const head = `HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${bearer}\r\n`
    const socket = connect(port, '127.0.0.1').resume()
    if (attack === 'followers') socket.write(`GET /events ${head}Accept: text/event-stream\r\n\r\n`)
    else setInterval(() => socket.write(`GET /plants?limit=1000 ${head}\r\n`), 50)
  }
}
