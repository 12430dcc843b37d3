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

/** Names in a file that somebody has modified can have any length. */
const maxShownName = 100

/**
 * Finds what would make a store keep something else than it is told: a trigger on one of our
 * tables, which could undo every revocation of a token, or a table or index of ours that is not as
 * the migrations up to this version make it. Everything else is left alone, such as the tables of
 * Litestream. Returns a description, such as `a trigger "undo" on the table "tokens"`.
 */
export function findTampering(db: DatabaseSync, version: number): string | undefined {
  const expected = expectParts(version)
  const tables = new Set(expected.map(({ table }) => table))
  const found = readParts(db)
  const trigger = found.find(
    ({ type, table }) => type === 'trigger' && tables.has(table.toLowerCase()),
  )
  if (trigger !== undefined) return `a ${show(trigger)} on the table "${trigger.table}"`
  for (const wanted of expected) {
    const part = found.find(({ type, name }) => type === wanted.type && name === wanted.name)
    if (part === undefined) return `no ${show(wanted)}`
    if (part.sql !== wanted.sql) return `another ${show(part)} than ours`
  }
}

function show({ type, name }: Part): string {
  return `${type} "${name.slice(0, maxShownName)}"`
}

/** Runs the migrations in memory. */
function expectParts(version: number): Part[] {
  const db = openDatabase(':memory:')
  runMigrations(db, 0, version)
  const parts = readParts(db)
  db.close()
  return parts
}

function readParts(db: DatabaseSync): Part[] {
  const rows = db.prepare('SELECT type, name, tbl_name AS "table", sql FROM sqlite_schema').all()
  return rows as unknown as Part[]
}
