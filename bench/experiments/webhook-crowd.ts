/**
 * A hundred receivers that accept connections and read nothing, and plants of 8 kB: the memory of a
 * service with a heap of 512 MB while they are created, and after it was killed and started again.
 *
 *   npx node bench/experiments/webhook-crowd.ts
 */
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { type AddressInfo, createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { openStore, toStoreLocation } from '../../src/store/open.ts'
import { newReceiver } from '../../src/webhooks/receiver.ts'
import { token } from '../requests.ts'
import { type ForkedService, forkService } from './fork-service.ts'

const receivers = 100
const creates = 1_000
const name = 'x'.repeat(8_000)
/** Long enough for every receiver to be tried, with an answer that never comes within 10 s. */
const watchedMs = 30_000

const folder = mkdtempSync(join(tmpdir(), 'plant-store-bench-'))
const url = `sqlite:${join(folder, 'plants.db')}`
const store = await openStore(toStoreLocation(url) as never)
const position = await store.journalEnd()
for (let count = 0; count < receivers; count++) {
  const server = createServer((socket) => socket.on('error', () => {}).pause()).unref()
  await once(server.listen(0, '127.0.0.1'), 'listening')
  const target = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`
  await store.receivers.add(newReceiver({ url: target, types: ['plant.created'], position }))
}
await store.close()

const execArgv = [...process.execArgv, '--max-old-space-size=512']
const first = await forkService(url, execArgv)
const created = await watch(first, () => createAll(first.port))
first.kill('SIGKILL')
console.log(`${receivers} receivers, ${creates} creates`.padEnd(34), `${created} MB at most`)
const second = await forkService(url, execArgv)
console.log('after a restart'.padEnd(34), `${await watch(second, async () => {})} MB at most`)
second.kill('SIGKILL')
rmSync(folder, { recursive: true, force: true })
process.exit()

async function createAll(port: number): Promise<void> {
  const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' }
  for (let id = 0; id < creates; id++) {
    const body = JSON.stringify({ id, name })
    const answer = await fetch(`http://127.0.0.1:${port}/plants`, { method: 'POST', headers, body })
    if (!answer.ok) throw new Error(`a create was answered ${answer.status}`)
  }
}

/** The most memory of a service during some work and for a while after it. */
async function watch(service: ForkedService, work: () => Promise<void>): Promise<number> {
  let [most, isOver] = [0, false]
  const worked = work().then(() => sleep(watchedMs))
  void worked.finally(() => {
    isOver = true
  })
  while (!isOver) {
    most = Math.max(most, await service.read('rssMb'))
    await sleep(100)
  }
  await worked
  return Math.round(most)
}
