import { DatabaseSync, type DatabaseSyncOptions } from 'node:sqlite'

/**
 * Opens a connection that does not trust the schema of the file: its views and triggers cannot call
 * functions with side effects.
 */
export function openDatabase(path: string | URL, options: DatabaseSyncOptions = {}): DatabaseSync {
  const db = new DatabaseSync(path, options)
  db.exec('PRAGMA trusted_schema = OFF')
  return db
}
