/**
 * The cost of a page in a store of 1,000,000 plants: at the start, in the middle and at the end,
 * with and without a tag; and a walk by `Link` through all pages while others create plants.
 *
 *   npx node bench/experiments/list.ts sqlite
 *   npx node bench/experiments/list.ts postgres
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { Agent, get } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { openStore, type StoreLocation, toStoreLocation } from '../../src/store/open.ts'
import { newCluster, query, startServer } from '../../test/support/postgres.ts'
import { median } from '../figures.ts'
import { token, toNextPath } from '../requests.ts'
import { forkService } from './fork-service.ts'

const count = Number(process.env.PLANTS ?? 1_000_000)
const pagesPerSlice = 200
const rounds = 9
/** The ids of the first plants are multiples of this, which leaves room for others in between. */
const idStep = 10
const headers = { Authorization: `Bearer ${token}` }

const folder = mkdtempSync(join(tmpdir(), 'plant-store-bench-'))
const server = process.argv[2] === 'postgres' ? await startServer(await newCluster()) : undefined
if (server) await query(server.toUrl('postgres'), 'CREATE DATABASE plants')
const url = server ? server.toUrl('plants') : `sqlite:${join(folder, 'plants.db')}`
await fill()
const service = await forkService(url)
const agent = new Agent({ keepAlive: true, maxSockets: 1 })

async function fill(): Promise<void> {
  const store = await openStore(toStoreLocation(url) as StoreLocation)
  for (let start = 0; start < count; start += 1_000) {
    const numbers = Array.from({ length: 1_000 }, (_, index) => start + index)
    await Promise.all(
      numbers.map((number) =>
        store.createPlant({
          id: BigInt(number * idStep),
          name: `Plant ${number}`,
          tag: number % 2 ? 'odd' : 'even',
        }),
      ),
    )
  }
  await store.close()
}

function read(path: string): Promise<{ ids: number[]; next: string | undefined }> {
  return new Promise((resolve, reject) => {
    get(`http://127.0.0.1:${service.port}${path}`, { agent, headers }, (answer) => {
      let text = ''
      answer.setEncoding('utf8').on('data', (part: string) => {
        text += part
      })
      answer.on('end', () => {
        if (answer.statusCode !== 200) return reject(new Error(text))
        const ids = JSON.parse(text).map((plant: { id: number }) => plant.id)
        resolve({ ids, next: toNextPath(answer.headers.link) })
      })
    }).on('error', reject)
  })
}

async function measurePages(): Promise<void> {
  const last = (count - 250) * idStep
  const paths: Record<string, string> = {}
  for (const [title, after] of Object.entries({ start: -1, middle: last / 2, end: last })) {
    paths[title] = `/plants?after=${after}`
    paths[`${title}, with a tag`] = `/plants?tag=odd&after=${after}`
  }
  const pages = Object.entries(paths).map(([title, path]) => ({
    title,
    path,
    costsUs: [] as number[],
  }))
  // Round 0 warms up.
  for (let round = 0; round <= rounds; round++) {
    for (const { path, costsUs } of pages) {
      const before = await service.read('cpuUs')
      for (let page = 0; page < pagesPerSlice; page++) await read(path)
      if (round > 0) costsUs.push(((await service.read('cpuUs')) - before) / pagesPerSlice)
    }
  }
  console.log(`${count.toLocaleString('en')} plants, a page of 100:`)
  for (const { title, costsUs } of pages) {
    const cost = median(costsUs).toFixed(0).padStart(5)
    console.log(`  ${title.padEnd(22)} ${cost} µs of CPU`)
  }
}

/** Creates plants one by one, with ids all over the store, until the signal aborts. */
async function createMeanwhile(signal: AbortSignal): Promise<number> {
  let created = 0
  while (!signal.aborted) {
    created++
    const id = ((created * 7_919) % count) * idStep + 1 + (created % 9)
    await fetch(`http://127.0.0.1:${service.port}/plants`, {
      method: 'POST',
      body: `{"id":${id},"name":"new"}`,
      headers: { ...headers, 'Content-Type': 'application/json' },
    })
  }
  return created
}

async function walk(): Promise<void> {
  const rssBefore = await service.read('rssMb')
  const walked = new AbortController()
  const creating = createMeanwhile(walked.signal)
  const timesSeen = new Uint8Array(count)
  let path: string | undefined = '/plants?limit=1000'
  let maxRss = rssBefore
  let pages = 0
  while (path !== undefined) {
    const { ids, next } = await read(path)
    for (const id of ids) if (id % idStep === 0) (timesSeen[id / idStep] as number)++
    if (++pages % 100 === 0) maxRss = Math.max(maxRss, await service.read('rssMb'))
    path = next
  }
  walked.abort()
  const created = await creating
  const missing = timesSeen.filter((times) => times === 0).length
  const twice = timesSeen.filter((times) => times > 1).length
  console.log(
    `walked ${pages} pages, ${created} creates meanwhile: ${missing} missing, ${twice} twice`,
  )
  const [before, peak] = [rssBefore, maxRss].map(Math.round)
  console.log(`memory of the service: ${before} MB before, at most ${peak} MB during the walk`)
}

await measurePages()
await walk()
service.kill()
agent.destroy()
await server?.stop()
rmSync(folder, { recursive: true, force: true })
