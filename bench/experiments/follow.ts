/**
 * A copy that follows: how fast `follow` fills a store, beside `import --url` of the same plants,
 * and how far it is behind while the source changes. Source and copy are on one engine.
 *
 *   npx node bench/experiments/follow.ts [--plants 1000000] [--engine postgres] [--rate 1000]
 */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { PlantStore } from '../../client/index.ts'
import { openStore, type StoreLocation, toStoreLocation } from '../../src/store/open.ts'
import { toPlant } from '../../src/store/store.ts'
import { quantile } from '../figures.ts'
import { openLab } from '../lab.ts'
import { token } from '../requests.ts'
import { servePlantStore, toPath } from '../serve.ts'
import { fillStore } from '../stores.ts'
import { runCommand } from '../transfer.ts'

const { values } = parseArgs({
  options: {
    plants: { type: 'string', default: '1000000' },
    engine: { type: 'string', default: 'sqlite' },
    rate: { type: 'string', default: '1000' },
    seconds: { type: 'string', default: '20' },
  },
})
const count = Number(values.plants)
const rate = Number(values.rate)
const changes = rate * Number(values.seconds)
const lookMs = 20
const lab = openLab('short', (text) => console.error(text))
process.env.PLANT_STORE_TOKEN = token

async function newUrl(name: string): Promise<string> {
  return values.engine === 'postgres'
    ? lab.newDatabase(name)
    : `sqlite:${join(lab.folder, `${name}.db`)}`
}

const from = await newUrl('source')
await fillStore(from, count, lab.progress)
const file = join(lab.folder, 'plants.ndjson')
await runCommand('export', file, '--database', from)

lab.progress('import --url')
const target = await servePlantStore(lab, await newUrl('imported'))
const imported = await runCommand('import', file, '--url', `http://127.0.0.1:${target.port}`)
await target.stop()

lab.progress('follow')
const service = await servePlantStore(lab, from)
const url = `http://127.0.0.1:${service.port}`
const client = new PlantStore({ url, token })
const to = await newUrl('copy')
const copy = await openStore(toStoreLocation(to) as StoreLocation)
const startedAt = performance.now()
const args = [toPath('../bin/plant-store.js'), 'follow', '--from', url, '--to', to]
const follower = spawn(process.execPath, args, { stdio: 'ignore' })

/** Waits until the copy has everything. */
async function waitForCopy(): Promise<void> {
  const end = await client.position()
  while ((await copy.readFollowed())?.position !== end) await sleep(lookMs)
}

await waitForCopy()
const followedSeconds = (performance.now() - startedAt) / 1000

lab.progress(`${rate} changes/s`)
const begin = await copy.journalEnd()
const creates: Promise<unknown>[] = []
const writingAt = performance.now()
while (creates.length < changes) {
  const due = Math.min(changes, ((performance.now() - writingAt) * rate) / 1000)
  // The name is the time at which the plant was sent.
  while (creates.length < due) {
    creates.push(client.create({ id: -1n - BigInt(creates.length), name: String(Date.now()) }))
  }
  await sleep(2)
}
await Promise.all(creates)
const reached = changes / ((performance.now() - writingAt) / 1000)
await waitForCopy()

/** From sending each change to its transaction in the copy. */
const delaysMs: number[] = []
for (let after = begin; delaysMs.length < changes; ) {
  const page = await copy.readJournal(after, 1_000)
  if (typeof page === 'string') throw new Error(`The journal of the copy is ${page}.`)
  for (const event of page.events) delaysMs.push(event.at - Number(toPlant(event).name))
  after = page.end
}

const perSecond = (seconds: number) => `${Math.round(count / seconds).toLocaleString('en')}/s`
const share = imported.seconds / followedSeconds
console.log(`${values.engine}, ${count.toLocaleString('en')} plants`)
console.log(`import --url        ${perSecond(imported.seconds)}`)
console.log(`follow              ${perSecond(followedSeconds)} (${share.toFixed(2)})`)
const [p50, p99, most] = [0.5, 0.99, 1].map((each) => quantile(delaysMs, each))
console.log(`behind at ${Math.round(reached)}/s    p50 ${p50} ms, p99 ${p99} ms, most ${most} ms`)
follower.kill('SIGTERM')
await once(follower, 'exit')
await copy.close()
await lab.close()
process.exit(0)
