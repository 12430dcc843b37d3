/**
 * The gain of a second worker on PostgreSQL: creates over 64 connections, with one worker and with
 * two in turn. The idle share of the cores shows whether a second worker had room at all.
 *
 *   npx node bench/experiments/workers.ts
 */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { availableParallelism, cpus } from 'node:os'
import { newCluster, query, startServer } from '../../test/support/postgres.ts'
import { median } from '../figures.ts'
import { token } from '../requests.ts'
import { toPath } from '../serve.ts'
import { createPlants } from './creates.ts'

const slices = 8
const load = { connections: 64, forMs: 1_000 }
const program = toPath('../bin/plant-store.js')

const server = await startServer(await newCluster())

async function startWorkers(count: number) {
  await query(server.toUrl('postgres'), `CREATE DATABASE workers${count}`)
  const env = {
    ...process.env,
    PORT: '0',
    DATABASE_URL: server.toUrl(`workers${count}`),
    PLANT_STORE_TOKEN: token,
  }
  const child = spawn(process.execPath, [program, 'serve', '--workers', String(count)], { env })
  let output = ''
  for await (const text of child.stdout.setEncoding('utf8')) {
    output += text
    if (output.includes('curl')) break
  }
  const port = Number(/address {3}http:\/\/[^:]+:(\d+)/.exec(output)?.[1])
  let lastId = 0
  return { count, child, port, nextId: () => lastId++, rates: [] as number[] }
}

function readIdle(): { idle: number; all: number } {
  const times = cpus().map(({ times: one }) => one)
  const all = times.flatMap((one) => Object.values(one)).reduce((a, b) => a + b, 0)
  return { idle: times.reduce((sum, { idle }) => sum + idle, 0), all }
}

const subjects = [await startWorkers(1), await startWorkers(2)]
const before = readIdle()
for (let slice = 0; slice < slices; slice++) {
  for (const { port, nextId, rates } of subjects) {
    const { stored, refused, other } = await createPlants(port, nextId, load)
    if (refused + other > 0) throw new Error(`${refused + other} creates failed`)
    rates.push(stored / (load.forMs / 1000))
  }
}
const after = readIdle()
const [one = 0, two = 0] = subjects.map(({ rates }) => median(rates))
console.log(`1 worker  ${Math.round(one).toLocaleString('en')} creates/s`)
console.log(`2 workers ${Math.round(two).toLocaleString('en')} creates/s`)
const idle = ((after.idle - before.idle) / (after.all - before.all)) * 100
console.log(
  `ratio ${(two / one).toFixed(2)}; ${availableParallelism()} cores, ${idle.toFixed(0)} % idle`,
)
for (const { child } of subjects) {
  child.kill('SIGTERM')
  await once(child, 'exit')
}
await server.stop()
