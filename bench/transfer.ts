/** Times the import and export commands next to the bare engine, on the same rows. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { toJson } from '../src/json/write.ts'
import { openStore, type StoreLocation, toStoreLocation } from '../src/store/open.ts'
import {
  type PlantRow,
  readWithBareEngine,
  writeLines,
  writeWithBareEngine,
} from './bare-engine.ts'
import { toPath } from './serve.ts'

const memoryPollMs = 20
const program = toPath('../bin/plant-store.js')

export interface TransferPlan {
  readonly count: number
  readonly rounds: number
  readonly folder: string
  /** Returns the DATABASE_URL of a new store. */
  newUrl(name: string): Promise<string>
  progress(text: string): void
}

/** The seconds of every round, and the peak memory of the commands. */
export interface Transfer {
  readonly bareImport: number[]
  readonly import: number[]
  readonly bareExport: number[]
  readonly export: number[]
  rssMb: number
}

/** Moves plants in and out of new stores, with the bare engine and with the commands in turn. */
export async function measureTransfer(plan: TransferPlan): Promise<Transfer> {
  const { count, rounds, folder, newUrl } = plan
  const rows = buildRows(count)
  const input = join(folder, 'plants.ndjson')
  writeLines(
    input,
    rows.map((row) => `${toJson(row)}\n`),
  )
  const found: Transfer = { bareImport: [], import: [], bareExport: [], export: [], rssMb: 0 }
  for (let round = 0; round < rounds; round++) {
    const progress = (step: string) =>
      plan.progress(`transfer, round ${round + 1} of ${rounds}: ${step}`)
    const bareUrl = await newUrl(`bare${round}`)
    const url = await newUrl(`ours${round}`)
    const [bareFile, file] = [join(folder, 'bare.ndjson'), join(folder, 'ours.ndjson')]
    await createSchema(bareUrl)
    progress('import by the bare engine')
    found.bareImport.push(await time(() => writeWithBareEngine(bareUrl, rows)))
    progress('import')
    const imported = await runCommand('import', input, '--database', url)
    progress('export by the bare engine')
    found.bareExport.push(await time(() => readWithBareEngine(url, bareFile)))
    progress('export')
    const exported = await runCommand('export', file, '--database', url)
    found.import.push(imported.seconds)
    found.export.push(exported.seconds)
    found.rssMb = Math.max(found.rssMb, imported.rssMb, exported.rssMb)
    if (!readFileSync(bareFile).equals(readFileSync(file))) {
      throw new Error('The export differs from the file that the bare engine wrote.')
    }
  }
  return found
}

function buildRows(count: number): PlantRow[] {
  return Array.from({ length: count }, (_, index) => ({
    id: BigInt(index) * 3n,
    name: `Monstera deliciosa ${index}`,
    ...(index % 3 > 0 && { tag: `tag ${index % 50}` }),
  }))
}

/** Runs a command; returns its seconds and its peak memory. */
export async function runCommand(...args: string[]): Promise<{ seconds: number; rssMb: number }> {
  const startedAt = performance.now()
  const child = spawn(process.execPath, [program, ...args, '--quiet'], { stdio: 'ignore' })
  let rssKb = 0
  const watch = setInterval(() => {
    try {
      const status = readFileSync(`/proc/${child.pid}/status`, 'utf8')
      rssKb = Number(/VmHWM:\s+(\d+)/.exec(status)?.[1] ?? rssKb)
    } catch {
      // The process has just ended; the last reading counts.
    }
  }, memoryPollMs)
  const [code] = await once(child, 'exit')
  clearInterval(watch)
  if (code !== 0) throw new Error(`${args.join(' ')} ended with ${code}`)
  return { seconds: (performance.now() - startedAt) / 1000, rssMb: rssKb / 1024 }
}

async function time(run: () => Promise<void> | void): Promise<number> {
  const startedAt = performance.now()
  await run()
  return (performance.now() - startedAt) / 1000
}

async function createSchema(url: string): Promise<void> {
  const store = await openStore(toStoreLocation(url) as StoreLocation)
  await store.close()
}
