import type { DatabaseSync } from 'node:sqlite'
import {
  chooseSteps,
  deliveryTable,
  journalTables,
  schemaVersion,
  tokenTables,
  type Upgrades,
} from '../tables.ts'
import { maxIndexedBytes, toTagKey } from './plants.ts'

/** The tables of both engines as SQLite has them. Those with a key of their own have no row id. */
function toSqlite(tables: string): string {
  const words = tables.replaceAll('plant_store.', '').replaceAll('bytea', 'blob')
  return words.replaceAll('bigint', 'integer').replaceAll(/CREATE TABLE [^;]+/g, (table) => {
    const isByKey = table.includes('PRIMARY KEY (')
    return `${table} STRICT${isByKey ? ', WITHOUT ROWID' : ''}`
  })
}

// The index holds the row id after each tag, so a page of one tag is one range of the index. It is
// by the tag, or by the hash of a long one, so that no two tags share a key.
const createPlants = `
  CREATE TABLE plants (
    id INTEGER PRIMARY KEY,
    name TEXT NOT NULL,
    tag TEXT,
    version INTEGER NOT NULL,
    tag_key BLOB
  ) STRICT;
  CREATE INDEX plants_by_tag ON plants (coalesce(tag_key, tag)) WHERE tag IS NOT NULL;
  ${toSqlite(tokenTables)}`

const createJournal = `
  ${toSqlite(journalTables)}
  INSERT INTO journal VALUES (1, unixepoch() * 1000, random() & 0x7fffffff, 0, '');
  INSERT INTO journal_life VALUES (lower(hex(randomblob(6))), 1);`

const addTagKey = `
  ALTER TABLE plants ADD COLUMN tag_key BLOB;
  UPDATE plants SET tag_key = to_tag_key(tag) WHERE octet_length(tag) > ${maxIndexedBytes};
  DROP INDEX plants_by_tag;
  CREATE INDEX plants_by_tag ON plants (coalesce(tag_key, tag)) WHERE tag IS NOT NULL;`

const addBodies = `
  ALTER TABLE deliveries RENAME TO old_deliveries;
  ${toSqlite(deliveryTable)}
  INSERT INTO deliveries
  SELECT receiver_id,
    substr('0000000000' || substr(tail, 1, instr(tail, '-') - 1), -10) ||
      substr('000000' || substr(line, 1, instr(line, '-') - 1), -6),
    position, type, at, plant_id, attempts, due_at, last_status, last_error,
    '{"id":' || plant_id || ',"name":' || json_quote(name) ||
      iif(tag IS NULL, '', ',"tag":' || json_quote(tag)) || '}'
  FROM (SELECT *, substr(tail, instr(tail, '-') + 1) AS line
    FROM (SELECT *, substr(position, 14) AS tail FROM old_deliveries));
  DROP TABLE old_deliveries;`

const upgrades: Upgrades = {
  0: [createPlants, createJournal],
  2: ['ALTER TABLE tokens ADD COLUMN last_four TEXT', addTagKey, createJournal],
  6: [addTagKey, addBodies],
  // Release 1.2.0 recorded there what its command `follow` had copied.
  9: ['DROP TABLE followed'],
}

/** Upgrades a store to the current schema. The caller holds a transaction. */
export function upgrade(db: DatabaseSync, from: number): void {
  const steps = chooseSteps(upgrades, from)
  db.function('to_tag_key', (tag) => toTagKey(tag as string))
  for (const step of steps) db.exec(step)
  db.exec(`PRAGMA user_version = ${schemaVersion}`)
}

const created = [createPlants, createJournal].join('').matchAll(/CREATE TABLE (\w+)/g)
const tables = new Set([...created].map(([, name]) => name))
/** Names in a file that somebody has modified can have any length. */
const maxShownName = 100

/**
 * Finds a trigger on one of our tables, which could undo every revocation of a token. Whatever else
 * the file holds is left alone, such as the tables of Litestream. Returns a description, such as
 * `a trigger "undo" on the table "tokens"`.
 */
export function findTrigger(db: DatabaseSync): string | undefined {
  const triggers = db
    .prepare(`SELECT name, tbl_name AS "table" FROM sqlite_schema WHERE type = 'trigger'`)
    .all() as { name: string; table: string }[]
  const found = triggers.find(({ table }) => tables.has(table.toLowerCase()))
  return found && `a trigger "${found.name.slice(0, maxShownName)}" on the table "${found.table}"`
}
