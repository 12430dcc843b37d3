/**
 * How soon running services act on what an operator does to a receiver, and how soon another
 * process delivers after the one that did is killed, with the usual settings of the service.
 *
 *   npx node bench/experiments/webhook-times.ts [rounds]
 */
import { mkdtempSync, rmSync } from 'node:fs'
import http from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { openStore, toStoreLocation } from '../../src/store/open.ts'
import { newReceiver } from '../../src/webhooks/receiver.ts'
import { quantile } from '../figures.ts'
import { forkService } from './fork-service.ts'

const rounds = Number(process.argv[2] ?? 10)
/** How often a plant is created, and so the resolution of the times. */
const everyMs = 10
const farewellMs = 100
const folder = mkdtempSync(join(tmpdir(), 'plant-store-bench-'))
const url = `sqlite:${join(folder, 'plants.db')}`
const store = await openStore(toStoreLocation(url) as never)
let arrivedAt = 0
const server = http.createServer((request, response) => {
  arrivedAt = performance.now()
  request.resume().on('end', () => response.end())
})
await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
const target = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`

let nextId = 0n
const creating = setInterval(() => void store.createPlant({ id: nextId++, name: 'x' }), everyMs)

/** The time from now to the next request that arrives. */
async function waitForRequest(): Promise<number> {
  const startedAt = performance.now()
  while (arrivedAt <= startedAt) await sleep(1)
  return arrivedAt - startedAt
}

/** The time from now to the last request, after which none arrives for a while. */
async function waitForSilence(): Promise<number> {
  const startedAt = performance.now()
  while (performance.now() - Math.max(arrivedAt, startedAt) < 2_000) await sleep(50)
  return Math.max(arrivedAt - startedAt, 0)
}

const times = { added: [], paused: [], resumed: [], 'taken over': [] } as Record<string, number[]>
const note = (what: string, ms: number) => times[what]?.push(ms)
let service = await forkService(url)
for (let round = 0; round < rounds; round++) {
  const position = await store.journalEnd()
  const receiver = newReceiver({ url: target, types: ['plant.created'], position })
  await store.receivers.add(receiver)
  note('added', await waitForRequest())
  await store.receivers.change(receiver.id, { kind: 'pause', reason: 'for the experiment' })
  note('paused', await waitForSilence())
  await store.receivers.change(receiver.id, { kind: 'resume' })
  note('resumed', await waitForRequest())
  const next = await forkService(url)
  service.kill('SIGKILL')
  // What was on its way arrives meanwhile.
  await sleep(farewellMs)
  note('taken over', farewellMs + (await waitForRequest()))
  service = next
  await store.receivers.remove(receiver.id)
}

for (const [what, measured] of Object.entries(times)) {
  const [p50, most] = [0.5, 1].map((share) => Math.round(quantile(measured, share)))
  console.log(`${what.padEnd(12)}p50 ${p50} ms, at most ${most} ms`)
}
clearInterval(creating)
service.kill()
await store.close()
server.close()
server.closeAllConnections()
rmSync(folder, { recursive: true, force: true })
