/**
 * What a receiver that is slow or down costs in memory: two services with a store of the same size
 * get the same creates in turn, one of them with the receiver. Their difference after the same
 * number of creates is what the receiver costs; that of two without one is the noise.
 *
 *   npx node bench/experiments/webhook-memory.ts
 */
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { openStore, toStoreLocation } from '../../src/store/open.ts'
import { newReceiver } from '../../src/webhooks/receiver.ts'
import { median } from '../figures.ts'
import { createPlants } from './creates.ts'
import { type ForkedService, forkService } from './fork-service.ts'

const warmCreates = 160_000
const rounds = 5
const createsPerRound = 20_000
const load = { connections: 64, forMs: 60_000 }

const folder = mkdtempSync(join(tmpdir(), 'plant-store-bench-'))
const child = fork(fileURLToPath(new URL('webhook-receiver.ts', import.meta.url)))
child.send('port')
const [port] = await once(child, 'message')

interface Side {
  readonly url: string
  readonly service: ForkedService
  readonly create: (count: number) => Promise<void>
}

async function openSide(name: string): Promise<Side> {
  const url = `sqlite:${join(folder, `${name}.db`)}`
  const service = await forkService(url)
  let lastId = 0
  async function create(count: number): Promise<void> {
    const end = lastId + count
    await createPlants(service.port, () => (lastId < end ? ++lastId : undefined), load)
  }
  return { url, service, create }
}

async function addReceiver({ url }: Side, target: string): Promise<void> {
  const store = await openStore(toStoreLocation(url) as never)
  const position = await store.journalEnd()
  await store.receivers.add(newReceiver({ url: target, types: ['plant.created'], position }))
  await store.close()
}

async function compare(name: string, target: string | undefined): Promise<void> {
  const sides = [await openSide(`${name} without`), await openSide(`${name} with`)] as const
  const [without, beside] = sides
  const read = async () =>
    (await beside.service.read('rssMb')) - (await without.service.read('rssMb'))
  for (const side of sides) await side.create(warmCreates)
  const before = await read()
  if (target !== undefined) await addReceiver(beside, target)
  const grown: number[] = []
  for (let round = 0; round < rounds; round++) {
    for (const side of sides) await side.create(createsPerRound)
    grown.push((await read()) - before)
  }
  const total = await without.service.read('rssMb')
  for (const { service } of sides) service.kill()
  const each = grown.map((mb) => mb.toFixed(0)).join(', ')
  console.log(
    `${name.padEnd(12)}${median(grown).toFixed(0)} MB (${each}) beside ${total.toFixed(0)} MB`,
  )
}

for (let run = 0; run < 2; run++) {
  await compare('none', undefined)
  await compare('slow', `http://127.0.0.1:${port}/slow`)
  await compare('down', 'http://127.0.0.1:1/')
}
child.kill()
rmSync(folder, { recursive: true, force: true })
