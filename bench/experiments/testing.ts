/**
 * How long a test waits for `plant-store/testing`, and how long an idle service takes to stop on
 * SIGTERM: medians, and the worst of nine in ten.
 *
 *   npx node bench/experiments/testing.ts
 */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { median, quantile } from '../figures.ts'

const rounds = 50
const services = 5
const plants = Array.from({ length: 48 }, (_, index) => ({
  id: 2n ** 62n + BigInt(index),
  name: `Plant ${index}`,
  tag: 'indoor',
}))
const times: Record<string, number[]> = {}

async function time<Value>(name: string, run: () => Promise<Value>): Promise<Value> {
  const startedAt = performance.now()
  const value = await run()
  times[name] ??= []
  times[name].push(performance.now() - startedAt)
  return value
}

const { startPlantStore } = await time('import', () => import('../../src/testing.ts'))
for (let round = 0; round < rounds; round++) {
  const name = round === 0 ? 'first start' : 'start'
  const store = await time(name, () => startPlantStore({ plants }))
  await store.client.create({ id: 1n, name: 'x' })
  await (await fetch(`${store.url}/healthz`)).text()
  await time('reset', () => store.reset(plants))
  await store.client.get(1n)
  await time('stop', store.stop)
}
for (let service = 0; service < services; service++) {
  const program = join(import.meta.dirname, '..', '..', 'bin', 'plant-store.js')
  const child = spawn(process.execPath, [program, 'serve', '--demo', '--port', '0'])
  await once(child.stdout, 'data')
  const exited = once(child, 'exit')
  await time('SIGTERM to exit, idle', () => {
    child.kill('SIGTERM')
    return exited
  })
}
for (const [name, taken] of Object.entries(times)) {
  const figures = [median(taken), quantile(taken, 0.9)].map((ms) => ms.toFixed(1).padStart(8))
  console.log(`${name.padEnd(22)}${figures.join(' ')} ms`)
}
