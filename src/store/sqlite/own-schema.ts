import type { DatabaseSync } from 'node:sqlite'
import { runMigrations } from './migrations.ts'
import { openDatabase } from './open-database.ts'

/** A part of a schema: a table, an index, a view or a trigger. */
interface Part {
  readonly type: string
  readonly name: string
  readonly table: string
  readonly sql: string | null
}

/** The tables of ANALYZE change no results. Only SQLite itself can create tables of these names. */
const statistics = [
  'CREATE TABLE sqlite_stat1(tbl,idx,stat)',
  'CREATE TABLE sqlite_stat4(tbl,idx,neq,nlt,ndlt,sample)',
]

/** Names in a file that somebody has modified can have any length. */
const maxShownName = 100

/**
 * Compares the schema of a file with the one that the migrations up to this version make. Returns
 * the first difference, such as `a foreign trigger "undo"`: a trigger, for example, could undo
 * every revocation of a token.
 */
export function findForeign(db: DatabaseSync, version: number): string | undefined {
  const expected = expectParts(version)
  const found = new Set<string>()
  for (const part of readParts(db)) {
    const { type, name, table, sql } = part
    const key = toKey(part)
    const wanted = expected.get(key)
    const shown = `${type} "${name.slice(0, maxShownName)}"`
    if (wanted === undefined || found.has(key)) return `a foreign ${shown}`
    found.add(key)
    if (wanted.sql !== sql || wanted.table !== table) {
      return `${/^[aeiou]/.test(type) ? 'an' : 'a'} ${shown} that was changed`
    }
  }
  const missing = expected.entries().find(([key]) => !found.has(key))?.[1]
  return missing && `no ${missing.type} "${missing.name}"`
}

/** Runs the migrations in memory. */
function expectParts(version: number): Map<string, Part> {
  const db = openDatabase(':memory:')
  runMigrations(db, 0, version)
  const parts = new Map(readParts(db).map((part) => [toKey(part), part]))
  db.close()
  return parts
}

function readParts(db: DatabaseSync): Part[] {
  const rows = db.prepare('SELECT type, name, tbl_name AS "table", sql FROM sqlite_schema').all()
  return (rows as unknown as Part[]).filter(({ sql }) => sql === null || !statistics.includes(sql))
}

function toKey({ type, name }: Part): string {
  return `${type} ${name}`
}
