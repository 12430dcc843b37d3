import { DatabaseSync, type DatabaseSyncOptions } from 'node:sqlite'

/**
 * Opens a connection. What the schema of a file says is not trusted: a view or a trigger in it
 * cannot call functions that have side effects.
 */
export function openDatabase(path: string | URL, options: DatabaseSyncOptions = {}): DatabaseSync {
  const db = new DatabaseSync(path, options)
  db.exec('PRAGMA trusted_schema = OFF')
  return db
}
