/**
 * What a second worker gains on PostgreSQL: creates over 64 connections, in turn against one worker and two. Where the
 * load generator and PostgreSQL need the cores themselves, it can gain nothing: the share of idle CPU time is shown.
 *
 *   npx node bench/workers.ts
 */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { availableParallelism, cpus } from 'node:os'
import { fileURLToPath } from 'node:url'
import { newCluster, query, startServer } from '../test/support/postgres.ts'
import { createPlants } from './load.ts'

const slices = 8
const load = { connections: 64, forMs: 1_000 }
const token = 'a-token-for-the-benchmark'
const program = fileURLToPath(new URL('../bin/plant-store.js', import.meta.url))

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
  return { count, child, port, nextId: 0, rates: [] as number[] }
}

function readIdle(): { idle: number; all: number } {
  const times = cpus().map(({ times: one }) => one)
  const all = times.flatMap((one) => Object.values(one)).reduce((a, b) => a + b, 0)
  return { idle: times.reduce((sum, { idle }) => sum + idle, 0), all }
}

const subjects = [await startWorkers(1), await startWorkers(2)]
const before = readIdle()
for (let slice = 0; slice < slices; slice++) {
  for (const subject of subjects) {
    const firstId = subject.nextId
    subject.nextId = await createPlants(subject.port, token, firstId, load)
    subject.rates.push((subject.nextId - firstId) / (load.forMs / 1000))
  }
}
const after = readIdle()
const medians = subjects.map(({ rates }) => rates.sort((a, b) => a - b)[rates.length >> 1] ?? 0)
for (const [index, { count }] of subjects.entries()) {
  console.log(
    `${count} worker${count > 1 ? 's' : ' '} ${Math.round(medians[index] ?? 0).toLocaleString('en')} creates/s`,
  )
}
const idle = (after.idle - before.idle) / (after.all - before.all)
console.log(
  `ratio ${((medians[1] ?? 0) / (medians[0] ?? 1)).toFixed(2)}; ${availableParallelism()} cores, ${(idle * 100).toFixed(0)} % of their time idle`,
)
for (const { child } of subjects) {
  child.kill('SIGTERM')
  await once(child, 'exit')
}
await server.stop()
