import type { DatabaseSync, DatabaseSyncOptions, SQLOutputValue } from 'node:sqlite'

// An import would end an older Node.js before it could say that it is too old.
const sqlite = process.getBuiltinModule('node:sqlite')

/**
 * Opens a connection that does not trust the schema of the file: its views and triggers cannot call
 * functions with side effects. Foreign keys of tables that are not ours cannot refuse our deletes.
 */
export function openDatabase(path: string | URL, options: DatabaseSyncOptions = {}): DatabaseSync {
  const db = new sqlite.DatabaseSync(path, { enableForeignKeyConstraints: false, ...options })
  db.exec('PRAGMA trusted_schema = OFF')
  return db
}

/** The value of a pragma, or the first value of the rows that it returns. */
export function readPragma(db: DatabaseSync, pragma: string): SQLOutputValue | undefined {
  return Object.values(db.prepare(`PRAGMA ${pragma}`).get() ?? {})[0]
}
