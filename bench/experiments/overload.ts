/**
 * Overload: creates over 64 connections, which reach the peak rate, in turn with 1,000 connections
 * that never pause; and the time until a lone client is served normally again.
 *
 *   npx node bench/experiments/overload.ts
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { median, quantile } from '../figures.ts'
import { createPlants } from './creates.ts'
import { forkService } from './fork-service.ts'

const rounds = 5
const forMs = 3_000
const warmMs = 1_000
const peak = { connections: 64, forMs }
const overload = { connections: 1_000, forMs }
const normalLatencyMs = 20

const folder = mkdtempSync(join(tmpdir(), 'plant-store-bench-'))
const service = await forkService(`sqlite:${join(folder, 'plants.db')}`)
let lastId = 0
const nextId = () => lastId++

/** The time after an overload until a lone client is answered within 20 ms. */
async function recover(): Promise<number> {
  const startedAt = performance.now()
  for (;;) {
    const { latenciesMs, stored } = await createPlants(service.port, nextId, {
      connections: 1,
      forMs: 0,
    })
    if (stored === 1 && (latenciesMs[0] ?? Number.POSITIVE_INFINITY) < normalLatencyMs)
      return performance.now() - startedAt
  }
}

const peaks: number[] = []
const goodputs: number[] = []
const recoveries: number[] = []
const total = { refused: 0, refusedWithoutRetryAfter: 0, other: 0 }
const latenciesMs: number[] = []
await createPlants(service.port, nextId, { ...peak, forMs: warmMs })
for (let round = 0; round < rounds; round++) {
  peaks.push((await createPlants(service.port, nextId, peak)).stored / (forMs / 1000))
  const over = await createPlants(service.port, nextId, overload)
  recoveries.push(await recover())
  goodputs.push(over.stored / (forMs / 1000))
  for (const name of Object.keys(total) as (keyof typeof total)[]) total[name] += over[name]
  for (const latencyMs of over.latenciesMs) latenciesMs.push(latencyMs)
}

const toRate = (value: number) => `${Math.round(value).toLocaleString('en')} creates/s`
const lines = {
  'peak, 64 connections': toRate(median(peaks)),
  'overload, 1,000': toRate(median(goodputs)),
  goodput: `${(median(goodputs) / median(peaks)).toFixed(2)} of the peak`,
  refused: `${total.refused}, ${total.refusedWithoutRetryAfter} of them without Retry-After`,
  'other answers': String(total.other),
  'p99 under overload': `${quantile(latenciesMs, 0.99).toFixed(0)} ms`,
  'back to normal': `after at most ${Math.max(...recoveries).toFixed(0)} ms`,
  'memory of the service': `${Math.round(await service.read('rssMb'))} MB`,
}
for (const [name, value] of Object.entries(lines)) console.log(`${name.padEnd(24)}${value}`)
service.kill()
rmSync(folder, { recursive: true, force: true })
