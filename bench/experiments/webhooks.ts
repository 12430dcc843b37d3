/**
 * Webhooks: how fast changes are delivered beside a bare loop of POST requests, what creates cost
 * beside a receiver that is quick, slow or down, and what 100 receivers cost at rest. See
 * webhook-memory.ts for memory, and webhook-times.ts for how soon operators are heard.
 *
 *   npx node bench/experiments/webhooks.ts
 */
import { fork } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import http from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { openStore, toStoreLocation } from '../../src/store/open.ts'
import { newReceiver } from '../../src/webhooks/receiver.ts'
import { median } from '../figures.ts'
import { createPlants } from './creates.ts'
import { forkService } from './fork-service.ts'

const changes = 20_000
const rounds = 5
const sliceMs = 1_500
const restMs = 10_000
const load = { connections: 64, forMs: sliceMs }

const folder = mkdtempSync(join(tmpdir(), 'plant-store-bench-'))
const url = `sqlite:${join(folder, 'plants.db')}`
const service = await forkService(url)
const store = await openStore(toStoreLocation(url) as never)
const child = fork(fileURLToPath(new URL('webhook-receiver.ts', import.meta.url)))
const ask = (question: string) =>
  new Promise<number>((resolve) => {
    child.once('message', (reply) => resolve(Number(reply)))
    child.send(question)
  })
const receiverUrl = `http://127.0.0.1:${await ask('port')}`
let lastId = 0
const nextId = () => lastId++

async function add(target: string): Promise<string> {
  const position = await store.journalEnd()
  const receiver = newReceiver({ url: target, types: ['plant.created'], position })
  await store.receivers.add(receiver)
  return receiver.id
}

/** POST requests of the size of a webhook with 16 on their way, and nothing else. */
async function sendBare(count: number): Promise<number> {
  const agent = new http.Agent({ keepAlive: true, maxSockets: 16 })
  const body = '{"id":12345,"name":"Monstera deliciosa","tag":"indoor"}'
  const headers = { 'content-type': 'application/json', 'content-length': body.length }
  const startedAt = performance.now()
  let left = count
  const send = () =>
    new Promise<void>((resolve, reject) => {
      const request = http.request(`${receiverUrl}/fast`, { method: 'POST', agent, headers })
      request.on('response', (answer) => answer.resume().on('end', resolve))
      request.on('error', reject).end(body)
    })
  const work = async () => {
    while (left-- > 0) await send()
  }
  await Promise.all(Array.from({ length: 16 }, work))
  agent.destroy()
  return count / (performance.now() - startedAt)
}

/** Delivers changes that wait in the journal. */
async function deliverAll(): Promise<number> {
  const id = await add(`${receiverUrl}/fast`)
  await store.receivers.change(id, { kind: 'pause', reason: 'until all are stored' })
  await ask('clear')
  for (let stored = 0; stored < changes; stored += 500) {
    const plants = Array.from({ length: 500 }, () => ({ id: BigInt(nextId()), name: 'Monstera' }))
    await store.importPlants(plants, 'keep')
  }
  const before = await ask('count')
  await store.receivers.change(id, { kind: 'resume' })
  while ((await ask('count')) === before) await sleep(5)
  const startedAt = performance.now()
  while ((await ask('size')) < changes) await sleep(20)
  const rate = changes / (performance.now() - startedAt)
  await store.receivers.remove(id)
  return rate
}

interface Slice {
  readonly rate: number
  readonly cpuUs: number
}

async function measureCreates(): Promise<Slice> {
  const cpuBefore = await service.read('cpuUs')
  const { stored } = await createPlants(service.port, nextId, load)
  const cpuUs = (await service.read('cpuUs')) - cpuBefore
  return { rate: stored / (sliceMs / 1000), cpuUs: cpuUs / stored }
}

/** Creates with and without a receiver, in turn. */
async function compare(name: string, target: string): Promise<void> {
  const without: Slice[] = []
  const beside: Slice[] = []
  await measureCreates()
  for (let round = 0; round < rounds; round++) {
    without.push(await measureCreates())
    const id = await add(target)
    await sleep(1_000)
    beside.push(await measureCreates())
    await store.receivers.remove(id)
    await sleep(600)
  }
  const toMedian = (slices: Slice[], figure: keyof Slice) =>
    median(slices.map((slice) => slice[figure]))
  const toRatio = (figure: keyof Slice) =>
    (toMedian(beside, figure) / toMedian(without, figure)).toFixed(2)
  const rates = [beside, without].map((slices) => Math.round(toMedian(slices, 'rate')))
  print(
    name,
    `${toRatio('rate')} (${rates.join(' of ')} creates/s), CPU of the service for each create ` +
      toRatio('cpuUs'),
  )
}

async function rest(): Promise<void> {
  await sleep(2_000)
  const before = await service.read('cpuUs')
  await sleep(restMs)
  const alone = (await service.read('cpuUs')) - before
  const ids: string[] = []
  for (let count = 0; count < 100; count++) ids.push(await add(`${receiverUrl}/fast`))
  await sleep(2_000)
  const beforeRest = await service.read('cpuUs')
  await sleep(restMs)
  const used = (await service.read('cpuUs')) - beforeRest
  const toShare = (cpuUs: number) => `${((cpuUs / restMs / 1000) * 100).toFixed(2)} % of a core`
  print('at rest, no receiver', toShare(alone))
  print('at rest, 100 receivers', toShare(used))
  for (const id of ids) await store.receivers.remove(id)
}

function print(name: string, value: string): void {
  console.log(`${name.padEnd(30)}${value}`)
}

const parts = process.argv.slice(2)
const isWanted = (part: string) => parts.length === 0 || parts.includes(part)
if (isWanted('rate')) {
  const ratios: number[] = []
  await sendBare(2_000)
  for (let round = 0; round < rounds; round++) {
    const bare = await sendBare(changes)
    const rate = await deliverAll()
    ratios.push(rate / bare)
    const rates = `${Math.round(rate * 1000)} and ${Math.round(bare * 1000)} per second`
    print('delivered, and a bare loop', `${(rate / bare).toFixed(2)} (${rates})`)
  }
  print('delivered / bare loop', median(ratios).toFixed(2))
}
if (isWanted('creates')) await compare('creates beside a receiver', `${receiverUrl}/fast`)
if (isWanted('slow')) await compare('creates beside a slow one', `${receiverUrl}/slow`)
if (isWanted('down')) await compare('creates beside one down', 'http://127.0.0.1:1/')
if (isWanted('rest')) await rest()
await store.close()
service.kill()
child.kill()
rmSync(folder, { recursive: true, force: true })
