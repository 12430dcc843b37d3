/**
 * Five times the load that can be served: creates over 64 connections, which is the peak, in turn with 1,000 connections
 * that each send the next request as soon as they have an answer; and how soon a single client is served as before.
 *
 *   npx node bench/overload.ts
 */
import { fork } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

const rounds = 5
const forMs = 3_000
const token = 'a-token-for-the-benchmark'
const folder = mkdtempSync(join(tmpdir(), 'plant-store-bench-'))
const url = `sqlite:${join(folder, 'plants.db')}`
const subject = fileURLToPath(new URL('subject.ts', import.meta.url))
const child = fork(subject, [url, token])
const ask = <Reply>(question: string) =>
  new Promise<Reply>((resolve) => {
    child.once('message', (reply) => resolve(reply as Reply))
    child.send(question)
  })
const { port } = await ask<{ port: number }>('port')
let nextId = 0

interface Tally {
  stored: number
  refused: number
  refusedWithoutRetryAfter: number
  other: number
  readonly times: number[]
}

function toRequest(): string {
  const body = `{"id":${nextId++},"name":"Monstera deliciosa","tag":"indoor"}`
  return `POST /plants HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${token}\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body}`
}

async function load(connections: number, durationMs: number): Promise<Tally> {
  const tally: Tally = { stored: 0, refused: 0, refusedWithoutRetryAfter: 0, other: 0, times: [] }
  const endsAt = performance.now() + durationMs
  const drive = () =>
    new Promise<void>((resolve, reject) => {
      const socket = connect(port, '127.0.0.1', send)
      let sentAt = 0
      socket.setNoDelay(true)
      socket.on('error', reject)
      socket.on('close', () => resolve())
      socket.on('data', (bytes) => {
        const now = performance.now()
        tally.times.push(now - sentAt)
        const text = bytes.toString('latin1')
        if (text.startsWith('HTTP/1.1 200')) tally.stored++
        else if (text.startsWith('HTTP/1.1 503')) {
          tally.refused++
          if (!/\r\nretry-after: \d/i.test(text)) tally.refusedWithoutRetryAfter++
        } else tally.other++
        if (now < endsAt) send()
        else socket.destroy()
      })
      function send(): void {
        sentAt = performance.now()
        socket.write(toRequest())
      }
    })
  await Promise.all(Array.from({ length: connections }, drive))
  return tally
}

/** How long it takes after an overload until a client that is alone is served within 20 ms. */
async function recover(): Promise<number> {
  const startedAt = performance.now()
  for (;;) {
    const { times, stored } = await load(1, 0)
    if (stored === 1 && (times[0] ?? Number.POSITIVE_INFINITY) < 20)
      return performance.now() - startedAt
  }
}

const median = (values: number[]) => values.sort((a, b) => a - b)[values.length >> 1] ?? 0
const peaks: number[] = []
const goodputs: number[] = []
const recoveries: number[] = []
const total = { refused: 0, refusedWithoutRetryAfter: 0, other: 0 }
const times: number[] = []
await load(64, 1_000)
for (let round = 0; round < rounds; round++) {
  peaks.push((await load(64, forMs)).stored / (forMs / 1000))
  const over = await load(1_000, forMs)
  recoveries.push(await recover())
  goodputs.push(over.stored / (forMs / 1000))
  for (const name of Object.keys(total) as (keyof typeof total)[]) total[name] += over[name]
  for (const time of over.times) times.push(time)
}
times.sort((a, b) => a - b)
const rate = (value: number) => Math.round(value).toLocaleString('en')
console.log(`peak, 64 connections      ${rate(median(peaks))} creates/s`)
console.log(`overload, 1,000           ${rate(median(goodputs))} creates/s`)
console.log(
  `goodput                   ${(median(goodputs) / median(peaks)).toFixed(2)} of the peak`,
)
console.log(
  `refused                   ${total.refused}, without Retry-After ${total.refusedWithoutRetryAfter}, other answers ${total.other}`,
)
console.log(
  `p99 under overload        ${(times[Math.floor(times.length * 0.99)] ?? 0).toFixed(0)} ms`,
)
console.log(`alone and served again    after at most ${Math.max(...recoveries).toFixed(0)} ms`)
console.log(`memory of the service     ${Math.round((await ask<number>('rss')) / 1024 / 1024)} MB`)
child.kill()
rmSync(folder, { recursive: true, force: true })
