import { createHash } from 'node:crypto'
import type { Row } from '../steps.ts'
import { Lost } from './failures.ts'

/** Runs a statement with its values as parameters. */
export type Query = <Found extends readonly object[] = Row[]>(
  parts: TemplateStringsArray,
  ...values: Value[]
) => Promise<Result<Found>>

/** Runs statements on one connection. They may be pipelined. */
export interface Sql extends Query {
  /** Runs a statement with `$1`, `$2` … for its values. Its text must be a constant. */
  run<Found extends readonly object[] = Row[]>(
    text: string,
    values?: readonly Value[],
  ): Promise<Result<Found>>
  /** The same, but each row is an array of texts, which is much cheaper for many rows. */
  texts<Row extends Texts>(text: string, values?: readonly Value[]): Promise<Row[]>
  /** Runs several statements without parameters. */
  script(text: string): Promise<void>
  /** How many warnings the server has sent. One with a commit: no standby has confirmed it. */
  warnings(): number
}

/** The rows of a statement, and how many it found or changed. */
export type Result<Found> = Found & { readonly count: number }
/** The fields of a row as the server writes them. */
export type Texts = readonly (string | null)[]
type Plain = string | number | bigint | boolean | Uint8Array | null
/** The value of a parameter. 64-bit integers are sent and received as text. */
export type Value = Plain | readonly Plain[]

/** One entry for each statement in the code. */
const names = new Map<string, string>()

/**
 * The name of a prepared statement: a hash of its text. Behind a pooler another process may have
 * prepared the same name, which is then the same statement.
 */
export function toStatementName(text: string): string {
  let name = names.get(text)
  if (name === undefined) {
    name = createHash('sha256').update(text).digest('base64url').slice(0, 22)
    names.set(text, name)
  }
  return name
}

/** Runs statements in one transaction. Nobody else may use the connection meanwhile. */
export async function inTransaction<Value>(sql: Sql, run: () => Promise<Value>): Promise<Value> {
  await sql`BEGIN`
  try {
    const value = await run()
    await sql`COMMIT`
    return value
  } catch (error) {
    // Losing the connection has ended the transaction.
    if (!(error instanceof Lost)) await sql`ROLLBACK`
    throw error
  }
}
