import { DatabaseSync, type DatabaseSyncOptions, type SQLOutputValue } from 'node:sqlite'

/**
 * Opens a connection that does not trust the schema of the file: its views and triggers cannot call
 * functions with side effects.
 */
export function openDatabase(path: string | URL, options: DatabaseSyncOptions = {}): DatabaseSync {
  const db = new DatabaseSync(path, options)
  db.exec('PRAGMA trusted_schema = OFF')
  return db
}

/** Named parameters for these columns: `id, name` becomes `:id, :name`. */
export function toParameters(columns: string): string {
  return columns.replaceAll(/\w+/g, ':$&')
}

/** The value of a pragma, or the first value of the rows that it returns. */
export function readPragma(db: DatabaseSync, pragma: string): SQLOutputValue | undefined {
  return Object.values(db.prepare(`PRAGMA ${pragma}`).get() ?? {})[0]
}
