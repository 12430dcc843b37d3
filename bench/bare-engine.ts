/** Import and export as the engine alone can do them: INSERT loops, COPY, SELECT loops. */
import { once } from 'node:events'
import { closeSync, openSync, writeSync } from 'node:fs'
import { finished } from 'node:stream/promises'
import postgres from 'postgres'
import { openConnection } from '../src/store/sqlite/connection.ts'

const rowsPerStep = 1_000
const bytesPerWrite = 65_536

export interface PlantRow {
  readonly id: bigint
  readonly name: string
  readonly tag?: string
}

/** Writes rows with INSERTs in transactions of 1,000, or with one COPY. */
export function writeWithBareEngine(url: string, rows: readonly PlantRow[]): Promise<void> | void {
  return isSqlite(url) ? insertIntoSqlite(toPath(url), rows) : copyIntoPostgres(url, rows)
}

/** Reads all rows with one SELECT and writes them as NDJSON. */
export function readWithBareEngine(url: string, output: string): Promise<void> | void {
  return isSqlite(url) ? selectFromSqlite(toPath(url), output) : selectFromPostgres(url, output)
}

/** Writes lines to a file in large pieces. */
export function writeLines(path: string, lines: Iterable<string>): void {
  const output = openSync(path, 'w')
  let text = ''
  for (const line of lines) {
    text += line
    if (text.length < bytesPerWrite) continue
    writeSync(output, text)
    text = ''
  }
  writeSync(output, text)
  closeSync(output)
}

function isSqlite(url: string): boolean {
  return url.startsWith('sqlite:')
}

function toPath(url: string): string {
  return url.slice('sqlite:'.length)
}

function insertIntoSqlite(path: string, rows: readonly PlantRow[]): void {
  const db = openConnection(path)
  const insert = db.prepare('INSERT INTO plants (id, name, tag, version) VALUES (?, ?, ?, ?)')
  for (let start = 0; start < rows.length; start += rowsPerStep) {
    db.exec('BEGIN')
    for (const { id, name, tag } of rows.slice(start, start + rowsPerStep)) {
      insert.run(id, name, tag ?? null, id)
    }
    db.exec('COMMIT')
  }
  db.close()
}

function selectFromSqlite(path: string, output: string): void {
  const db = openConnection(path)
  function* lines(): Generator<string> {
    for (const row of db.prepare('SELECT id, name, tag FROM plants ORDER BY id').iterate()) {
      yield toLine(row as unknown as SelectedRow)
    }
  }
  writeLines(output, lines())
  db.close()
}

async function copyIntoPostgres(url: string, rows: readonly PlantRow[]): Promise<void> {
  const sql = postgres(url, { max: 1 })
  const stream = await sql`COPY plant_store.plants (id, name, tag, version) FROM STDIN`.writable()
  for (let start = 0; start < rows.length; start += rowsPerStep) {
    const text = rows
      .slice(start, start + rowsPerStep)
      .map(({ id, name, tag = '\\N' }) => `${id}\t${name}\t${tag}\t${id}\n`)
      .join('')
    if (!stream.write(text)) await once(stream, 'drain')
  }
  stream.end()
  await finished(stream)
  await sql.end()
}

async function selectFromPostgres(url: string, output: string): Promise<void> {
  const sql = postgres(url, { max: 1 })
  const file = openSync(output, 'w')
  const select = sql<SelectedRow[]>`SELECT id, name, tag FROM plant_store.plants ORDER BY id`
  await select.cursor(rowsPerStep, (page) => {
    let text = ''
    for (const row of page) text += toLine(row)
    writeSync(file, text)
  })
  closeSync(file)
  await sql.end()
}

interface SelectedRow {
  readonly id: bigint | string
  readonly name: string
  readonly tag: string | null
}

function toLine({ id, name, tag }: SelectedRow): string {
  const tagMember = tag === null ? '' : `,"tag":${JSON.stringify(tag)}`
  return `{"id":${id},"name":${JSON.stringify(name)}${tagMember}}\n`
}
