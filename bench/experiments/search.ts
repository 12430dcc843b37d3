/**
 * The cost of a search by name: CPU time of one request that examines 5,000 ordinary plants, or
 * names and texts made to be slow, and the time in which the client searches a whole store.
 *
 *   npx node bench/experiments/search.ts sqlite
 *   npx node bench/experiments/search.ts postgres
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { PlantStore } from '../../client/index.ts'
import { openStore, type StoreLocation, toStoreLocation } from '../../src/store/open.ts'
import { newCluster, query, startServer } from '../../test/support/postgres.ts'
import { median } from '../figures.ts'
import { token } from '../requests.ts'
import { forkService } from './fork-service.ts'

const count = Number(process.env.PLANTS ?? 1_000_000)
const rounds = 15

/** Names of 1 MB, below all other ids, and a text for each that nearly matches everywhere. */
const slow = [
  ['one letter', 'a'.repeat(1_000_000), `${'a'.repeat(999)}c`],
  ['two letters in turn', 'ab'.repeat(500_000), `${'ab'.repeat(499)}ac`],
  ['a letter that becomes two', 'İ'.repeat(500_000), `${'İ'.repeat(900)}c`],
  ['a sigma', 'Σ'.repeat(500_000), `${'Σ'.repeat(900)}c`],
  ['emoji', '😀'.repeat(250_000), `${'😀'.repeat(600)}c`],
] as const
const firstSlowId = -1_000
const shortId = -10

const folder = mkdtempSync(join(tmpdir(), 'plant-store-bench-'))
const server = process.argv[2] === 'postgres' ? await startServer(await newCluster()) : undefined
if (server) await query(server.toUrl('postgres'), 'CREATE DATABASE plants')
const url = server ? server.toUrl('plants') : `sqlite:${join(folder, 'plants.db')}`
await fill()
const service = await forkService(url)
const address = `http://127.0.0.1:${service.port}`
const headers = { Authorization: `Bearer ${token}` }

async function fill(): Promise<void> {
  const store = await openStore(toStoreLocation(url) as StoreLocation)
  for (const [index, [, name]] of slow.entries()) {
    await store.createPlant({ id: BigInt(firstSlowId + index), name })
  }
  for (let start = 0; start < count; start += 5_000) {
    const plants = Array.from({ length: 5_000 }, (_, index) => ({
      id: BigInt(start + index),
      name: `Monstera deliciosa ${start + index}`,
      tag: index % 2 ? 'odd' : 'even',
    }))
    await store.importPlants(plants, 'keep')
  }
  // A name that exceeds its share of the page: lengths are counted then.
  await store.createPlant({ id: BigInt(shortId), name: 'x'.repeat(300) })
  await store.close()
}

async function measure(title: string, parameters: Record<string, string>): Promise<void> {
  const path = `${address}/plants?${new URLSearchParams(parameters)}`
  const costsMs: number[] = []
  for (let round = 0; round < rounds + 5; round++) {
    const before = await service.read('cpuUs')
    const answer = await fetch(path, { headers })
    if (!answer.ok) throw new Error(await answer.text())
    await answer.arrayBuffer()
    if (round >= 5) costsMs.push(((await service.read('cpuUs')) - before) / 1_000)
  }
  const [cost, worst] = [median(costsMs), Math.max(...costsMs)].map((ms) => ms.toFixed(1))
  console.log(`  ${title.padEnd(44)} ${cost} ms, at most ${worst} ms`)
}

async function walk(order: 'asc' | 'desc', name: string): Promise<void> {
  const client = new PlantStore({ url: address, token })
  const before = await service.read('cpuUs')
  const startedAt = performance.now()
  const found = await Array.fromAsync(client.list({ name, order, after: undefined }))
  const seconds = (performance.now() - startedAt) / 1_000
  const cpuSeconds = ((await service.read('cpuUs')) - before) / 1e6
  console.log(
    `  ${order}, ${found.length} found: ${seconds.toFixed(2)} s, ${cpuSeconds.toFixed(2)} s of CPU in the service`,
  )
}

console.log('CPU time of one request:')
await measure('5,000 plants, none found', { name: 'xonst', after: '0' })
await measure('5,000 plants, none found, descending', { name: 'xonst', order: 'desc' })
await measure('5,000 plants of a tag, none found', { name: 'xonst', tag: 'odd', after: '0' })
await measure('5,000 plants, one of them large', { name: 'xonst', after: String(shortId - 1) })
await measure('1,000 found', { name: 'sa 9', limit: '1000', after: '900000' })
for (const [index, [title, , text]] of slow.entries()) {
  await measure(`a name of 1 MB: ${title}`, { name: text, after: String(firstSlowId + index - 1) })
}
console.log(`The client searches ${count.toLocaleString('en')} plants:`)
for (let round = 0; round < 3; round++) {
  await walk('asc', `sa ${count - 1}`)
  await walk('desc', 'sa 77777')
}
service.kill()
await server?.stop()
rmSync(folder, { recursive: true, force: true })
