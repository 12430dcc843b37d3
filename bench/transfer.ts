/**
 * Import and export of 1,000,000 plants beside what the bare engine takes for the same rows: a loop of INSERTs in
 * transactions of 1,000, a COPY, a SELECT loop that writes the same lines. Commands are timed from start to exit.
 *
 *   npx node bench/transfer.ts sqlite|postgres [plants]
 */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, mkdtempSync, openSync, readFileSync, rmSync, writeSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { finished } from 'node:stream/promises'
import { fileURLToPath } from 'node:url'
import postgres from 'postgres'
import { toJson } from '../src/json/write.ts'
import { openStore, type StoreLocation, toStoreLocation } from '../src/store/open.ts'
import { openConnection } from '../src/store/sqlite/connection.ts'
import { newCluster, query, startServer } from '../test/support/postgres.ts'
import { median } from './figures.ts'

const program = fileURLToPath(new URL('../bin/plant-store.js', import.meta.url))

export interface TransferPlan {
  readonly count: number
  readonly rounds: number
  readonly folder: string
  /** A place for a new store, as DATABASE_URL names it. */
  newUrl(name: string): Promise<string>
  progress(text: string): void
}

/** The seconds of every round, and the most memory that a command held. */
export interface Transfer {
  readonly bareIn: number[]
  readonly import: number[]
  readonly bareOut: number[]
  readonly export: number[]
  rssMb: number
}

interface Row {
  readonly id: bigint
  readonly name: string
  readonly tag?: string
}

/** Moves plants in and out of new stores, by our commands and by the bare engine, in turn. */
export async function measureTransfer(plan: TransferPlan): Promise<Transfer> {
  const { count, rounds, folder, newUrl, progress } = plan
  const rows = buildRows(count)
  const file = join(folder, 'plants.ndjson')
  writeFile(
    file,
    rows.map((row) => `${toJson(row)}\n`),
  )
  const found: Transfer = { bareIn: [], import: [], bareOut: [], export: [], rssMb: 0 }
  for (let round = 0; round < rounds; round++) {
    const bare = await newUrl(`bare${round}`)
    const ours = await newUrl(`ours${round}`)
    const [bareFile, oursFile] = [join(folder, 'bare.ndjson'), join(folder, 'ours.ndjson')]
    await prepare(bare)
    progress(`transfer, round ${round + 1} of ${rounds}: in, by the bare engine`)
    found.bareIn.push(await time(() => putBare(bare, rows)))
    progress(`transfer, round ${round + 1} of ${rounds}: import`)
    const imported = await runCommand('import', file, '--database', ours)
    progress(`transfer, round ${round + 1} of ${rounds}: out, by the bare engine`)
    found.bareOut.push(await time(() => takeBare(ours, bareFile)))
    progress(`transfer, round ${round + 1} of ${rounds}: export`)
    const exported = await runCommand('export', oursFile, '--database', ours)
    found.import.push(imported.seconds)
    found.export.push(exported.seconds)
    found.rssMb = Math.max(found.rssMb, imported.rss, exported.rss)
    if (!readFileSync(bareFile).equals(readFileSync(oursFile))) {
      throw new Error('the export is not what the loop wrote')
    }
  }
  return found
}

function buildRows(count: number): Row[] {
  return Array.from({ length: count }, (_, index) => ({
    id: BigInt(index) * 3n,
    name: `Monstera deliciosa ${index}`,
    ...(index % 3 > 0 && { tag: `tag ${index % 50}` }),
  }))
}

function putBare(url: string, rows: readonly Row[]): Promise<void> | void {
  return isSqlite(url) ? insertBare(toPath(url), rows) : copyBare(url, rows)
}

function takeBare(url: string, output: string): Promise<void> | void {
  return isSqlite(url) ? selectBare(toPath(url), output) : selectFromServer(url, output)
}

function isSqlite(url: string): boolean {
  return url.startsWith('sqlite:')
}

function toPath(url: string): string {
  return url.slice('sqlite:'.length)
}

function writeFile(path: string, lines: Iterable<string>): void {
  const output = openSync(path, 'w')
  let text = ''
  for (const line of lines) {
    text += line
    if (text.length < 65_536) continue
    writeSync(output, text)
    text = ''
  }
  writeSync(output, text)
  closeSync(output)
}

/** Runs the command; answers its seconds and the most memory that it held. */
async function runCommand(...args: string[]): Promise<{ seconds: number; rss: number }> {
  const startedAt = performance.now()
  const child = spawn(process.execPath, [program, ...args, '--quiet'], { stdio: 'ignore' })
  let rss = 0
  const watch = setInterval(() => {
    try {
      const status = readFileSync(`/proc/${child.pid}/status`, 'utf8')
      rss = Number(/VmHWM:\s+(\d+)/.exec(status)?.[1] ?? rss)
    } catch {}
  }, 20)
  const [code] = await once(child, 'exit')
  clearInterval(watch)
  if (code !== 0) throw new Error(`${args.join(' ')} ended with ${code}`)
  return { seconds: (performance.now() - startedAt) / 1000, rss: rss / 1024 }
}

async function time(run: () => Promise<void> | void): Promise<number> {
  const startedAt = performance.now()
  await run()
  return (performance.now() - startedAt) / 1000
}

async function prepare(url: string): Promise<void> {
  const store = await openStore(toStoreLocation(url) as StoreLocation)
  await store.close()
}

function insertBare(path: string, rows: readonly Row[]): void {
  const db = openConnection(path)
  const insert = db.prepare('INSERT INTO plants (id, name, tag, version) VALUES (?, ?, ?, ?)')
  for (let start = 0; start < rows.length; start += 1_000) {
    db.exec('BEGIN')
    for (const { id, name, tag } of rows.slice(start, start + 1_000)) {
      insert.run(id, name, tag ?? null, id)
    }
    db.exec('COMMIT')
  }
  db.close()
}

function selectBare(path: string, output: string): void {
  const db = openConnection(path)
  function* lines(): Generator<string> {
    for (const row of db.prepare('SELECT id, name, tag FROM plants ORDER BY id').iterate()) {
      const { id, name, tag } = row as { id: bigint; name: string; tag: string | null }
      yield `{"id":${id},"name":${JSON.stringify(name)}${tag === null ? '' : `,"tag":${JSON.stringify(tag)}`}}\n`
    }
  }
  writeFile(output, lines())
  db.close()
}

async function copyBare(url: string, rows: readonly Row[]): Promise<void> {
  const sql = postgres(url, { max: 1 })
  const stream = await sql`COPY plant_store.plants (id, name, tag, version) FROM STDIN`.writable()
  for (let start = 0; start < rows.length; start += 1_000) {
    const text = rows
      .slice(start, start + 1_000)
      .map(({ id, name, tag = '\\N' }) => `${id}\t${name}\t${tag}\t${id}\n`)
      .join('')
    if (!stream.write(text)) await once(stream, 'drain')
  }
  stream.end()
  await finished(stream)
  await sql.end()
}

async function selectFromServer(url: string, output: string): Promise<void> {
  const sql = postgres(url, { max: 1 })
  const file = openSync(output, 'w')
  const select = sql`SELECT id, name, tag FROM plant_store.plants ORDER BY id`
  await select.cursor(1_000, (page) => {
    let text = ''
    for (const { id, name, tag } of page) {
      text += `{"id":${id},"name":${JSON.stringify(name)}${tag === null ? '' : `,"tag":${JSON.stringify(tag)}`}}\n`
    }
    writeSync(file, text)
  })
  closeSync(file)
  await sql.end()
}

if (import.meta.main) await main()

async function main(): Promise<void> {
  const [engine = 'sqlite', plants = '1000000'] = process.argv.slice(2)
  const count = Number(plants)
  const folder = mkdtempSync(join(tmpdir(), 'plant-store-bench-'))
  const server = engine === 'postgres' ? await startServer(await newCluster()) : undefined
  const found = await measureTransfer({
    count,
    rounds: 3,
    folder,
    async newUrl(name) {
      if (server === undefined) return `sqlite:${join(folder, `${name}.db`)}`
      await query(server.toUrl('postgres'), `CREATE DATABASE ${name}`)
      return server.toUrl(name)
    },
    progress() {},
  })
  for (const name of ['bareIn', 'import', 'bareOut', 'export'] as const) {
    const seconds = median(found[name])
    const rate = Math.round(count / seconds).toLocaleString('en')
    console.log(
      `${name.padEnd(9)} ${seconds.toFixed(2).padStart(6)} s  ${rate.padStart(9)} plants/s`,
    )
  }
  const inRatio = median(found.bareIn) / median(found.import)
  const outRatio = median(found.bareOut) / median(found.export)
  console.log(`import ${inRatio.toFixed(2)} of the bare rate`)
  console.log(`export ${outRatio.toFixed(2)} of the bare rate`)
  console.log(`memory of a command: at most ${Math.round(found.rssMb)} MB`)
  await server?.stop()
  rmSync(folder, { recursive: true, force: true })
}
