import { createHash } from 'node:crypto'
import type pg from 'pg'
import { type Row, type Steps, toStatement } from '../steps.ts'
import { Lost } from './failures.ts'

/** Runs statements on one connection. They may be pipelined. */
export type Sql = ReturnType<typeof buildSql>
/** Runs a statement with its values as parameters. */
export type Query = <Found extends readonly object[] = Row[]>(
  parts: TemplateStringsArray,
  ...values: Value[]
) => Promise<Result<Found>>

/** The rows of a statement, and how many it found or changed. */
export type Result<Found> = Found & { readonly count: number }
/** The fields of a row as the server writes them. */
export type Texts = readonly (string | null)[]
type Plain = string | number | bigint | boolean | Uint8Array | null
/** The value of a parameter. 64-bit integers are sent and received as text. */
export type Value = Plain | readonly Plain[]

/** A statement as it is sent. A script of several has no name and no values. */
export type SentQuery = pg.QueryConfig<Value[]> & Partial<pg.QueryArrayConfig<Value[]>>

/** Builds what runs statements, on a function that sends them. */
export function buildSql(
  send: (query: SentQuery) => Promise<pg.QueryResult>,
  warnings: () => number,
) {
  const toQuery = (text: string, values: readonly Value[]) => ({
    text,
    values: [...values],
    name: toStatementName(text),
  })

  async function run<Found extends readonly object[] = Row[]>(
    text: string,
    values: readonly Value[] = [],
  ): Promise<Result<Found>> {
    const { rows, rowCount } = await send(toQuery(text, values))
    return Object.assign(rows, { count: rowCount ?? 0 }) as unknown as Result<Found>
  }

  const tag: Query = (parts, ...values) => run(toStatement(parts), values)
  return Object.assign(tag, {
    /** Runs a statement with `$1`, `$2` … for its values. Its text must be a constant. */
    run,
    /** The same, but each row is an array of texts, which is much cheaper for many rows. */
    async texts<Row extends Texts>(text: string, values: readonly Value[] = []) {
      const { rows } = await send({ ...toQuery(text, values), rowMode: 'array', types: asText })
      return rows as Row[]
    },
    /** Runs several statements without parameters. */
    script: async (text: string) => void (await send({ text })),
    /** How many warnings the server has sent. A commit with one was confirmed by no standby. */
    warnings,
  })
}

/** Leaves every field as the server writes it. */
const asText: pg.CustomTypesConfig = { getTypeParser: () => (text: string) => text }

/** One entry for each statement in the code. */
const names = new Map<string, string>()

/**
 * The name of a prepared statement: a hash of its text. Behind a pooler another process may have
 * prepared the same name, which is then the same statement.
 */
function toStatementName(text: string): string {
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

/** Runs the steps of an operation. */
export async function runSteps<Outcome>(sql: Sql, steps: Steps<Outcome>): Promise<Outcome> {
  let step = steps.next()
  while (!step.done) {
    const { text, values } = step.value
    step = steps.next(await sql.run(text, values))
  }
  return step.value
}
