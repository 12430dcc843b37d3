/**
 * What metrics cost: recording the answer to a create, in nanoseconds, and a scrape, in CPU time of
 * the service, with few and with many plants.
 *
 *   npx node bench/experiments/metrics.ts [--plants 300000] [--scrapes 200]
 */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { countAnswer } from '../../src/http/exchange.ts'
import { buildRequestMetrics } from '../../src/metrics/requests.ts'
import { buildHistogram, observe, secondsBounds } from '../../src/store/measures.ts'
import { openStore, type StoreLocation, toStoreLocation } from '../../src/store/open.ts'
import { median } from '../figures.ts'

const token = 'a-token-for-this-experiment'
const program = join(import.meta.dirname, '..', '..', 'bin', 'plant-store.js')
const { values } = parseArgs({
  options: {
    plants: { type: 'string', default: '300000' },
    scrapes: { type: 'string', default: '200' },
  },
})
const folder = mkdtempSync(join(tmpdir(), 'plant-store-metrics-'))
try {
  console.log({ recordingNs: Math.round(measureRecording()) })
  for (const plants of [0, Number(values.plants)]) {
    const path = join(folder, `${plants}.db`)
    await fill(path, plants)
    console.log({ plants, ...(await measureScrapes(path, Number(values.scrapes))) })
  }
} finally {
  rmSync(folder, { recursive: true })
}

/** All that a create in a batch of its own records: its answer, and its batch. */
function measureRecording(): number {
  const rounds = 15
  const calls = 200_000
  const counters = buildRequestMetrics().countersOf('createPlant')
  const [items, batches, commits] = [1, 2, 3].map(() => buildHistogram(secondsBounds))
  const headers = { 'content-length': '51' }
  const times = Array.from({ length: rounds }, () => {
    const before = process.cpuUsage()
    for (let call = 0; call < calls; call++) {
      const startedAt = performance.now()
      counters.begun++
      const batchAt = performance.now()
      if (items) observe(items, 1)
      if (batches) observe(batches, (performance.now() - batchAt) / 1000)
      if (commits) observe(commits, 0.001)
      countAnswer(counters, 200, (performance.now() - startedAt) / 1000, 44)
      observe(counters.requestBytes, Number(headers['content-length'] ?? 0))
    }
    const { user, system } = process.cpuUsage(before)
    return ((user + system) * 1000) / calls
  })
  return median(times)
}

async function fill(path: string, count: number): Promise<void> {
  const store = await openStore(toStoreLocation(`sqlite:${path}`) as StoreLocation)
  const size = 10_000
  for (let from = 0; from < count; from += size) {
    const ids = Array.from({ length: Math.min(size, count - from) }, (_, index) => from + index)
    const plants = ids.map((id) => ({ id: BigInt(id), name: 'Monstera deliciosa', tag: 'indoor' }))
    await store.importPlants(plants, 'keep')
  }
  await store.close()
}

async function measureScrapes(path: string, scrapes: number) {
  const env = { DATABASE_URL: `sqlite:${path}`, PLANT_STORE_TOKEN: token, PORT: '0' }
  const child = spawn(process.execPath, [program, 'serve'], {
    env: { PATH: process.env.PATH, ...env },
    stdio: ['ignore', 'pipe', 'ignore'],
  })
  const url = await readAddress(child.stdout)
  const scrape = async () => {
    const answer = await fetch(`${url}/metrics`, { headers: { Authorization: `Bearer ${token}` } })
    const text = await answer.text()
    return { text, cpu: Number(/^process_cpu_seconds_total (\S+)$/m.exec(text)?.[1]) }
  }
  // Every operation has been used, so that every series is there.
  for (const path of [
    'plants',
    'plants/1',
    'healthz',
    'readyz',
    'openapi.json',
    'events',
    'none',
  ]) {
    await (await fetch(`${url}/${path}`, { headers: { Authorization: `Bearer ${token}` } })).text()
  }
  const first = await scrape()
  const each: number[] = []
  let { cpu, text } = await scrape()
  for (let count = 0; count < scrapes; count++) {
    const next = await scrape()
    each.push((next.cpu - cpu) * 1000)
    ;({ cpu, text } = next)
  }
  child.kill('SIGINT')
  await once(child, 'exit')
  const lines = text.split('\n').filter((line) => line !== '' && !line.startsWith('#')).length
  const mean = each.reduce((sum, ms) => sum + ms, 0) / scrapes
  return {
    scrapeCpuMs: Number(mean.toFixed(2)),
    medianMs: Number(median(each).toFixed(2)),
    series: lines,
    bytes: first.text.length,
  }
}

async function readAddress(output: NodeJS.ReadableStream): Promise<string> {
  let text = ''
  for await (const more of output) {
    text += more
    const [, url] = /address {3}(http:\S+)\n/.exec(text) ?? []
    if (url !== undefined) return url
  }
  throw new Error('the service did not start')
}
