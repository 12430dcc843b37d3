import { createHash } from 'node:crypto'
import { isLoss } from './failures.ts'

/** Statements on one connection. They may be sent without waiting for the ones before. */
export interface Sql {
  /** Runs a statement with its values as parameters. */
  <Found extends readonly object[] = Row[]>(
    parts: TemplateStringsArray,
    ...values: Value[]
  ): Promise<Result<Found>>
  /** Runs a statement that has `$1`, `$2` … for its values. Its text must be a constant. */
  run<Found extends readonly object[] = Row[]>(
    text: string,
    values?: readonly Value[],
  ): Promise<Result<Found>>
  /** The same, with each row as the array that comes: much cheaper where rows are many. */
  texts<Row extends Texts>(text: string, values?: readonly Value[]): Promise<Row[]>
  /** Runs several statements without values. */
  script(text: string): Promise<void>
}

/** The rows of a statement, and how many it found or changed. */
export type Result<Found> = Found & { readonly count: number }
/** The fields of a row as the server writes them. */
export type Texts = readonly (string | null)[]
type Plain = string | number | bigint | boolean | Uint8Array | null
/** What a parameter may be. 64-bit integers are sent and come as text. */
export type Value = Plain | readonly Plain[]

type Row = Readonly<Record<string, unknown>>

/** One entry for each template in the code. */
const texts = new WeakMap<TemplateStringsArray, string>()
/** One entry for each statement in the code. */
const names = new Map<string, string>()

/** The text of a statement from its template: a parameter between any two parts. */
export function toStatement(parts: TemplateStringsArray): string {
  let text = texts.get(parts)
  if (text === undefined) {
    text = parts.reduce((before, part, index) => `${before}$${index}${part}`)
    texts.set(parts, text)
  }
  return text
}

/**
 * The name of a prepared statement: a hash of its text. Behind a pooler, a name may meet what
 * another process has prepared, which is then the same statement.
 */
export function toStatementName(text: string): string {
  let name = names.get(text)
  if (name === undefined) {
    name = createHash('sha256').update(text).digest('base64url').slice(0, 22)
    names.set(text, name)
  }
  return name
}

/** Inserts one row into a table of the store. Its columns must always be the same. */
export async function insertRow(
  sql: Sql,
  table: string,
  row: Readonly<Record<string, Value>>,
): Promise<void> {
  const columns = Object.keys(row)
  const places = columns.map((_, index) => `$${index + 1}`)
  await sql.run(
    `INSERT INTO plant_store.${table} (${columns.join(', ')}) VALUES (${places.join(', ')})`,
    Object.values(row),
  )
}

/** Runs statements in one transaction, on a connection that nobody else uses meanwhile. */
export async function inTransaction<Value>(sql: Sql, run: () => Promise<Value>): Promise<Value> {
  await sql`BEGIN`
  try {
    const value = await run()
    await sql`COMMIT`
    return value
  } catch (error) {
    // With the connection, the transaction is gone as well.
    if (!isLoss(error)) await sql`ROLLBACK`
    throw error
  }
}
