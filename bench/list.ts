/**
 * What a page costs in a store of 1,000,000 plants: at its start, in its middle and at its end, with and without a tag;
 * and a walk of all of them by `Link` while others are created, with the memory of the service before and after.
 *
 *   npx node bench/list.ts sqlite
 *   npx node bench/list.ts postgres
 */
import { fork } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { Agent, get } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { openStore, type StoreLocation, toStoreLocation } from '../src/store/open.ts'
import { newCluster, query, startServer } from '../test/support/postgres.ts'

const count = Number(process.env.PLANTS ?? 1_000_000)
const pagesPerSlice = 200
const rounds = 9
const token = 'a-token-for-the-benchmark'
/** The ids of the plants are multiples of this, so that others can come in between. */
const step = 10

const folder = mkdtempSync(join(tmpdir(), 'plant-store-bench-'))
const server = process.argv[2] === 'postgres' ? await startServer(await newCluster()) : undefined
if (server) await query(server.toUrl('postgres'), 'CREATE DATABASE plants')
const url = server ? server.toUrl('plants') : `sqlite:${join(folder, 'plants.db')}`
await fill()

const child = fork(fileURLToPath(new URL('subject.ts', import.meta.url)), [url, token], {
  stdio: 'inherit',
})
const ask = <Reply>(question: string) =>
  new Promise<Reply>((resolve) => {
    child.once('message', (reply) => resolve(reply as Reply))
    child.send(question)
  })
const { port } = await ask<{ port: number }>('port')
const agent = new Agent({ keepAlive: true, maxSockets: 1 })

async function fill(): Promise<void> {
  const store = await openStore(toStoreLocation(url) as StoreLocation)
  for (let start = 0; start < count; start += 1_000) {
    const numbers = Array.from({ length: 1_000 }, (_, index) => start + index)
    await Promise.all(
      numbers.map((number) =>
        store.createPlant({
          id: BigInt(number * step),
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
    const headers = { Authorization: `Bearer ${token}` }
    get(`http://127.0.0.1:${port}${path}`, { agent, headers }, (answer) => {
      let text = ''
      answer.setEncoding('utf8').on('data', (part: string) => {
        text += part
      })
      answer.on('end', () => {
        if (answer.statusCode !== 200) return reject(new Error(text))
        const link = /<http:\/\/[^/]+([^>]+)>/.exec(String(answer.headers.link ?? ''))?.[1]
        resolve({ ids: JSON.parse(text).map((plant: { id: number }) => plant.id), next: link })
      })
    }).on('error', reject)
  })
}

const last = (count - 250) * step
const places = [
  ['start', -1],
  ['middle', last / 2],
  ['end', last],
].flatMap(([title, after]) => [
  { title: `${title}`, path: `/plants?after=${after}`, costs: [] as number[] },
  { title: `${title}, with a tag`, path: `/plants?tag=odd&after=${after}`, costs: [] as number[] },
])
for (let round = 0; round <= rounds; round++) {
  for (const place of places) {
    const before = await ask<number>('cpu')
    for (let page = 0; page < pagesPerSlice; page++) await read(place.path)
    // The first round warms up.
    if (round > 0) place.costs.push(((await ask<number>('cpu')) - before) / pagesPerSlice)
  }
}
console.log(`${count.toLocaleString('en')} plants, a page of 100:`)
for (const { title, costs } of places) {
  const median = costs.sort((a, b) => a - b)[costs.length >> 1] ?? 0
  console.log(`  ${title.padEnd(22)} ${median.toFixed(0).padStart(5)} µs of CPU`)
}

const rssBefore = await ask<number>('rss')
let isWalking = true
const creating = (async () => {
  let id = 1
  while (isWalking) {
    // Ids that end in 1 to 9, all over the store.
    const body = `{"id":${((id * 7_919) % count) * step + 1 + (id % 9)},"name":"new"}`
    await fetch(`http://127.0.0.1:${port}/plants`, {
      method: 'POST',
      body,
      headers: { Authorization: `Bearer ${token}`, 'Content-Type': 'application/json' },
    })
    id++
  }
  return id
})()
const seen = new Uint8Array(count)
let twice = 0
let path: string | undefined = '/plants?limit=1000'
let rssMost = rssBefore
let pages = 0
while (path !== undefined) {
  const { ids, next } = await read(path)
  for (const id of ids) {
    const place = id / step
    if (!Number.isInteger(place)) continue
    if (seen[place]) twice++
    seen[place] = 1
  }
  if (++pages % 100 === 0) rssMost = Math.max(rssMost, await ask<number>('rss'))
  path = next
}
isWalking = false
const created = await creating
const missing = seen.reduce((sum, times) => sum + (times === 0 ? 1 : 0), 0)
const megabytes = (bytes: number) => `${Math.round(bytes / 1024 / 1024)} MB`
console.log(
  `walk in ${pages} pages while ${created} were created: ${missing} missing, ${twice} twice`,
)
console.log(
  `memory of the service: ${megabytes(rssBefore)} before, at most ${megabytes(rssMost)} during the walk`,
)
child.kill()
agent.destroy()
await server?.stop()
rmSync(folder, { recursive: true, force: true })
