/**
 * The CPU of this process for calls through the client, against the same by hand with `fetch` and
 * `response.json()`: gets one after the other and 16 at a time, and a walk over all plants.
 *
 *   npx node bench/experiments/client.ts
 */
import { PlantStore } from '../../client/index.ts'
import { token, toNextPath } from '../requests.ts'
import { forkService } from './fork-service.ts'

const count = Number(process.env.PLANTS ?? 100_000)
const slicesOfGets = Number(process.env.SLICES ?? 600)
const walks = 40
const getsPerSlice = 50
const atATime = 16

const service = await forkService('sqlite::memory:')
const url = `http://127.0.0.1:${service.port}`
const headers = { Authorization: `Bearer ${token}` }
const store = new PlantStore({ url, token })

async function fill(): Promise<void> {
  for (let start = 0; start < count; start += 500) {
    const ids = Array.from({ length: 500 }, (_, index) => BigInt(start + index))
    await Promise.all(ids.map((id) => store.create({ id, name: `Plant ${id}`, tag: 'indoor' })))
  }
}

async function getByHand(id: number): Promise<unknown> {
  const response = await fetch(`${url}/plants/${id}`, { headers })
  if (!response.ok) throw new Error(`${response.status}`)
  return response.json()
}

async function walkByHand(): Promise<number> {
  let walked = 0
  for (let path: string | undefined = '/plants?limit=1000'; path !== undefined; ) {
    const response: Response = await fetch(url + path, { headers })
    for (const plant of (await response.json()) as { id: number }[]) walked += plant.id >= 0 ? 1 : 0
    path = toNextPath(response.headers.get('link') ?? undefined)
  }
  return walked
}

async function walk(): Promise<number> {
  let walked = 0
  for await (const plant of store.list()) walked += plant.id >= 0n ? 1 : 0
  return walked
}

async function getMany(get: (index: number) => Promise<unknown>, parallel: number): Promise<void> {
  let next = 0
  const work = async () => {
    while (next < getsPerSlice) await get(next++)
  }
  await Promise.all(Array.from({ length: parallel }, work))
}

async function measureCpuMs(work: () => Promise<unknown>): Promise<number> {
  const before = process.cpuUsage()
  await work()
  const { user, system } = process.cpuUsage(before)
  return (user + system) / 1_000
}

/**
 * Short slices of all alternate. The ratios are those of the sums: a collection of garbage takes as
 * long as many gets, and falls into the slices of all alike. By hand runs twice: the ratio of the
 * two tells the noise.
 */
async function compare(
  title: string,
  slices: number,
  byClient: () => Promise<unknown>,
  byHand: () => Promise<unknown>,
): Promise<void> {
  const client = { work: byClient, cpuMs: 0 }
  const hand = { work: byHand, cpuMs: 0 }
  const again = { work: byHand, cpuMs: 0 }
  const forms = [hand, client, again]
  for (let slice = -slices / 10; slice < slices; slice++) {
    for (const form of forms) {
      const ms = await measureCpuMs(form.work)
      if (slice >= 0) form.cpuMs += ms
    }
    forms.reverse()
  }
  const [ratio, noise, clientMs, handMs] = [
    (2 * client.cpuMs) / (hand.cpuMs + again.cpuMs),
    again.cpuMs / hand.cpuMs,
    client.cpuMs / slices,
    hand.cpuMs / slices,
  ].map((figure) => figure.toFixed(2))
  console.log(
    `${title}: ${ratio} (client ${clientMs} ms, by hand ${handMs} ms of CPU, again ${noise})`,
  )
}

await fill()
for (const parallel of [1, atATime]) {
  await compare(
    `${getsPerSlice} gets, ${parallel} at a time`,
    slicesOfGets,
    () => getMany((index) => store.get(BigInt(index)), parallel),
    () => getMany(getByHand, parallel),
  )
}
await compare(`a walk over ${count} plants`, walks, walk, walkByHand)
service.kill()
process.exit()
