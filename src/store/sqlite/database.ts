import type { DatabaseSync, DatabaseSyncOptions, SQLOutputValue, StatementSync } from 'node:sqlite'
import type { Answer, Row, Statement, Steps } from '../steps.ts'
import { UnusableStore } from '../store.ts'

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

/** The values of the pragma `synchronous`. */
const levels = { NORMAL: 1, FULL: 2 }

/**
 * Sets which commits of a connection are synced: with FULL every one, with NORMAL only checkpoints.
 * SQLite ignores a pragma that it cannot obey, so the setting is read back.
 */
export function setSynchronous(db: DatabaseSync, level: keyof typeof levels): void {
  db.exec(`PRAGMA synchronous = ${level}`)
  const found = readPragma(db, 'synchronous')
  if (Number(found) === levels[level]) return
  throw new UnusableStore(`SQLite does not sync commits: synchronous is ${found}, not ${level}.`)
}

/** Prepares a statement whose rows come as arrays. */
export function prepareRows(db: DatabaseSync, sql: string): StatementSync {
  const statement = db.prepare(sql)
  statement.setReturnArrays(true)
  return statement
}

interface Prepared {
  readonly statement: StatementSync
  readonly hasRows: boolean
}

/** Builds a function that runs the steps of an operation, without a pause between them. */
export function buildStepRunner(db: DatabaseSync) {
  const prepared = new Map<string, Prepared>()

  function prepare(text: string): Prepared {
    let found = prepared.get(text)
    if (found === undefined) {
      const ours = text.replaceAll('plant_store.', '').replaceAll(/\$(?=\d)/g, '?')
      const statement = db.prepare(ours)
      found = { statement, hasRows: statement.columns().length > 0 }
      prepared.set(text, found)
    }
    return found
  }

  function answer({ text, values }: Statement): Answer {
    const { statement, hasRows } = prepare(text)
    if (!hasRows) return Object.assign([], { count: Number(statement.run(...values).changes) })
    const rows = statement.all(...values) as unknown as Row[]
    return Object.assign(rows, { count: rows.length })
  }

  return <Outcome>(steps: Steps<Outcome>): Outcome => {
    let step = steps.next()
    while (!step.done) step = steps.next(answer(step.value))
    return step.value
  }
}
