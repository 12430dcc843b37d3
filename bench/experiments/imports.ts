/**
 * Imports over HTTP: a file sent to a running service beside the import into the store itself, and
 * single creates of other clients beside it and alone.
 *
 *   npx node bench/experiments/imports.ts [--plants 1000000] [--engine postgres]
 */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { openAsBlob, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { openLab } from '../lab.ts'
import { token, toRequests } from '../requests.ts'
import { servePlantStore, toPath } from '../serve.ts'

const { values } = parseArgs({
  options: { plants: { type: 'string', default: '1000000' }, engine: { type: 'string' } },
})
const count = Number(values.plants)
const writers = 8
const aloneMs = 5_000
const program = toPath('../bin/plant-store.js')

const lab = openLab('short', (text) => console.error(text))
const file = join(lab.folder, 'plants.ndjson')
writeFileSync(
  file,
  Array.from(
    { length: count },
    (_, id) => `{"id":${-id - 1},"name":"Monstera deliciosa ${id}","tag":"tag ${id % 50}"}\n`,
  ).join(''),
)

async function newUrl(name: string): Promise<string> {
  return values.engine === 'postgres'
    ? lab.newDatabase(name)
    : `sqlite:${join(lab.folder, `${name}.db`)}`
}

/** Runs an import into a store and answers its plants a second. */
async function runImport(...flags: string[]): Promise<number> {
  const startedAt = performance.now()
  const child = spawn(process.execPath, [program, 'import', file, '--quiet', ...flags], {
    stdio: ['ignore', 'inherit', 'inherit'],
  })
  const [code] = await once(child, 'exit')
  if (code !== 0) throw new Error(`import ended with ${code}`)
  return count / ((performance.now() - startedAt) / 1000)
}

/** Sends the file to a service and answers its plants a second. */
async function sendFile(port: number): Promise<number> {
  const startedAt = performance.now()
  const headers = { Authorization: `Bearer ${token}`, 'Content-Type': 'application/x-ndjson' }
  const body = await openAsBlob(file)
  const url = `http://127.0.0.1:${port}/plants.ndjson`
  const answer = await fetch(url, { method: 'POST', headers, body })
  const report = (await answer.json()) as { stored?: number }
  if (report.stored !== count) throw new Error(`the import answered ${JSON.stringify(report)}`)
  return count / ((performance.now() - startedAt) / 1000)
}

/** A figure of the memory of a process, in MB. */
function readMemory(pid: number, name: 'VmRSS' | 'VmHWM'): number {
  const status = readFileSync(`/proc/${pid}/status`, 'utf8')
  return Number(new RegExp(`${name}:\\s+(\\d+)`).exec(status)?.[1]) / 1024
}

lab.progress('import into the store')
const direct = await runImport('--database', await newUrl('direct'), '--create')

lab.progress('import over HTTP')
const service = await servePlantStore(lab, await newUrl('served'))
const creates = { port: service.port, connections: writers, cycle: [toRequests(0, 200).create] }
await lab.drive({ ...creates, forMs: aloneMs })
const rssBefore = readMemory(service.pid, 'VmRSS')
const served = await sendFile(service.port)
const rssMost = readMemory(service.pid, 'VmHWM')
const alone = await lab.drive({ ...creates, forMs: aloneMs })
await service.stop()

lab.progress('import over HTTP beside creates')
const busy = await servePlantStore(lab, await newUrl('busy'))
const busyCreates = { ...creates, port: busy.port }
await lab.drive({ ...busyCreates, forMs: aloneMs })
let isOver = false
const importing = sendFile(busy.port).finally(() => {
  isOver = true
})
const p99s: number[] = []
let requests = 0
while (!isOver) {
  const beside = await lab.drive({ ...busyCreates, forMs: 1_000 })
  if (!isOver) p99s.push(beside.p99Ms)
  requests += beside.requests
}
const besideRate = await importing
await busy.stop()

const p99 = p99s.sort((a, b) => a - b)[Math.floor(p99s.length / 2)] ?? Number.NaN
const rate = (value: number) => `${Math.round(value).toLocaleString('en')}/s`
console.log(`plants                      ${count.toLocaleString('en')}`)
console.log(`import into the store       ${rate(direct)}`)
console.log(`import over HTTP            ${rate(served)} (${(served / direct).toFixed(2)})`)
console.log(
  `  beside ${writers} writers          ${rate(besideRate)} (${(besideRate / direct).toFixed(2)}), ${requests} creates`,
)
console.log(
  `RSS of the service          ${rssBefore.toFixed(0)} MB, then at most ${rssMost.toFixed(0)} MB (+${(rssMost - rssBefore).toFixed(0)})`,
)
console.log(
  `p99 of creates              ${alone.p99Ms.toFixed(1)} ms alone, ${p99.toFixed(1)} ms beside (${(p99 / alone.p99Ms).toFixed(1)})`,
)
await lab.close()
process.exit(0)
