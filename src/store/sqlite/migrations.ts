import type { DatabaseSync } from 'node:sqlite'
import { maxIndexedBytes, toTagKey } from './plants.ts'

/** The schema, step by step. A released step is never edited: add another one. */
export const migrations: readonly string[] = [
  `CREATE TABLE plants (
     id INTEGER PRIMARY KEY,
     name TEXT NOT NULL,
     tag TEXT,
     version INTEGER NOT NULL
   ) STRICT;
   CREATE TABLE tokens (
     id TEXT PRIMARY KEY,
     hash BLOB NOT NULL UNIQUE,
     name TEXT NOT NULL,
     scopes TEXT NOT NULL,
     created_at INTEGER NOT NULL,
     expires_at INTEGER,
     revoked_at INTEGER,
     last_used_at INTEGER
   ) STRICT, WITHOUT ROWID;
   CREATE TABLE token_revision (revision INTEGER NOT NULL) STRICT;
   INSERT INTO token_revision VALUES (0);`,
  // The index holds the row id after each tag, so a page of one tag is one range of the index.
  `CREATE INDEX plants_by_tag ON plants (tag) WHERE tag IS NOT NULL;
   CREATE TABLE keys (
     token_id TEXT NOT NULL,
     key TEXT NOT NULL,
     fingerprint BLOB NOT NULL,
     version INTEGER NOT NULL,
     used_at INTEGER NOT NULL,
     PRIMARY KEY (token_id, key)
   ) STRICT, WITHOUT ROWID;
   CREATE INDEX keys_by_use ON keys (used_at);`,
  // By the beginning of the tag: a tag of a megabyte would slow down every look-up.
  `DROP INDEX plants_by_tag;
   CREATE INDEX plants_by_tag ON plants (substr(tag, 1, 100)) WHERE tag IS NOT NULL;`,
  'ALTER TABLE tokens ADD COLUMN last_four TEXT;',
  // A row for each commit. `journal_life` has the journal id, or NULL while the journal is off, and
  // the row with which it begins, which has no changes.
  `CREATE TABLE journal (
     seq INTEGER PRIMARY KEY,
     at INTEGER NOT NULL,
     nonce INTEGER NOT NULL,
     count INTEGER NOT NULL,
     changes TEXT NOT NULL
   ) STRICT;
   INSERT INTO journal VALUES (1, unixepoch() * 1000, random() & 0x7fffffff, 0, '');
   CREATE TABLE journal_life (id TEXT, since INTEGER NOT NULL) STRICT;
   INSERT INTO journal_life VALUES (lower(hex(randomblob(6))), 1);`,
  `CREATE TABLE receivers (
     id TEXT PRIMARY KEY,
     url TEXT NOT NULL,
     types TEXT NOT NULL,
     secret TEXT NOT NULL,
     previous_secret TEXT,
     previous_until INTEGER,
     state TEXT NOT NULL,
     reason TEXT,
     created_at INTEGER NOT NULL,
     position TEXT NOT NULL,
     ahead TEXT NOT NULL,
     last_success_at INTEGER,
     last_failure_at INTEGER,
     last_failure TEXT,
     failing_since INTEGER,
     lease_owner TEXT,
     lease_until INTEGER NOT NULL DEFAULT 0,
     lease_epoch INTEGER NOT NULL DEFAULT 0
   ) STRICT, WITHOUT ROWID;
   CREATE TABLE deliveries (
     sequence INTEGER PRIMARY KEY,
     receiver_id TEXT NOT NULL,
     position TEXT NOT NULL,
     type TEXT NOT NULL,
     at INTEGER NOT NULL,
     plant_id INTEGER NOT NULL,
     name TEXT NOT NULL,
     tag TEXT,
     attempts INTEGER NOT NULL,
     due_at INTEGER,
     last_status INTEGER,
     last_error TEXT,
     UNIQUE (receiver_id, position)
   ) STRICT;
   CREATE TABLE receiver_revision (revision INTEGER NOT NULL) STRICT;
   INSERT INTO receiver_revision VALUES (0);`,
  // `place` sorts deliveries in journal order: the row and the line of a position, zero-padded.
  // Deliveries get a body; the order in which they were added is no longer needed.
  `ALTER TABLE deliveries RENAME TO old_deliveries;
   CREATE TABLE deliveries (
     receiver_id TEXT NOT NULL,
     place TEXT NOT NULL,
     position TEXT NOT NULL,
     type TEXT NOT NULL,
     at INTEGER NOT NULL,
     plant_id INTEGER NOT NULL,
     attempts INTEGER NOT NULL,
     due_at INTEGER,
     last_status INTEGER,
     last_error TEXT,
     body TEXT NOT NULL,
     PRIMARY KEY (receiver_id, place)
   ) STRICT, WITHOUT ROWID;
   INSERT INTO deliveries
   SELECT receiver_id,
     substr('0000000000' || substr(tail, 1, instr(tail, '-') - 1), -10) ||
       substr('000000' || substr(line, 1, instr(line, '-') - 1), -6),
     position, type, at, plant_id, attempts, due_at, last_status, last_error,
     '{"id":' || plant_id || ',"name":' || json_quote(name) ||
       iif(tag IS NULL, '', ',"tag":' || json_quote(tag)) || '}'
   FROM (SELECT *, substr(tail, instr(tail, '-') + 1) AS line
     FROM (SELECT *, substr(position, 14) AS tail FROM old_deliveries));
   DROP TABLE old_deliveries;`,
  // By the tag, or by the hash of a long one, so that no two tags share a key.
  `ALTER TABLE plants ADD COLUMN tag_key BLOB;
   UPDATE plants SET tag_key = to_tag_key(tag) WHERE octet_length(tag) > ${maxIndexedBytes};
   DROP INDEX plants_by_tag;
   CREATE INDEX plants_by_tag ON plants (coalesce(tag_key, tag)) WHERE tag IS NOT NULL;`,
  // The source of a copy, the position up to which it is in sync (none while it is filled), and the
  // number of its writes, by which two processes notice each other.
  `CREATE TABLE followed (source TEXT, position TEXT, revision INTEGER NOT NULL) STRICT;
   INSERT INTO followed VALUES (NULL, NULL, 0);`,
  // A copy is an ordinary store.
  'DROP TABLE followed;',
]

/** Runs the steps from one version of the schema to another. */
export function runMigrations(db: DatabaseSync, from: number, to = migrations.length): void {
  db.function('to_tag_key', (tag) => toTagKey(tag as string))
  for (const step of migrations.slice(from, to)) db.exec(step)
}

const tables = new Set(
  migrations.flatMap((step) => [...step.matchAll(/CREATE TABLE (\w+)/g)].map(([, name]) => name)),
)
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
