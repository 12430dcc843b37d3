/**
 * The memory of a process that mirrors a store and keeps nothing, beside a writer: the heap after
 * a collection of garbage, at each tenth of the plants.
 *
 *   npx node bench/experiments/mirror.ts
 */
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { PlantStore } from '../../client/index.ts'
import { token } from '../requests.ts'
import { forkService } from './fork-service.ts'

const count = Number(process.env.PLANTS ?? 1_000_000)
setFlagsFromString('--expose-gc')
const collectGarbage = runInNewContext('gc') as () => void

function* plants() {
  for (let id = 0n; id < count; id++) yield { id, name: `Plant ${id}`, tag: 'indoor' }
}

const service = await forkService('sqlite::memory:')
const store = new PlantStore({ url: `http://127.0.0.1:${service.port}`, token })
await store.importPlants(plants())
let isDone = false
const writing = (async () => {
  for (let written = 0; !isDone; written++) await store.replace(-1n, { name: `${written}` })
  await store.replace(-1n, { name: 'last' })
})()

const figures: string[] = []
let seen = 0
const startedAt = performance.now()
for await (const change of store.mirror()) {
  if (change.type === 'plant' && ++seen % (count / 10) === 1) {
    collectGarbage()
    figures.push((process.memoryUsage().heapUsed / 2 ** 20).toFixed(1))
  }
  if (change.type === 'synced') {
    const seconds = (performance.now() - startedAt) / 1_000
    console.log(`${seen} plants in ${seconds.toFixed(1)} s, heap in MiB: ${figures.join(' ')}`)
    isDone = true
  }
  if (change.type === 'plant.replaced' && change.plant.name === 'last') break
}
await writing
collectGarbage()
console.log(`at the end: ${(process.memoryUsage().heapUsed / 2 ** 20).toFixed(1)} MiB`)
service.kill()
process.exit()
