/**
 * Operations on tokens, receivers, keys and the journal are written once for both engines, as
 * generators that yield statements and receive their answers. SQLite runs the steps synchronously,
 * inside the transaction of a batch. PostgreSQL awaits each answer, in a transaction of its own.
 *
 * The text of a statement is that of PostgreSQL, in words that SQLite knows as well: `CAST`, not
 * `::`; no arrays. SQLite gets it without the schema, and with `?1` for `$1`.
 */
export type Steps<Outcome> = Generator<Statement, Outcome, Answer>

/** Runs an operation. It may run several times, so each run begins with new steps. */
export type Run = <Outcome>(operation: () => Steps<Outcome>) => Promise<Outcome>

export interface Statement {
  readonly text: string
  readonly values: readonly Value[]
}

export type Value = string | number | bigint | Uint8Array | null

/** The rows that a statement has returned, and how many it has found or changed. */
export type Answer = readonly Row[] & { readonly count: number }

/** A row by column. 64-bit integers are bigints on SQLite and texts on PostgreSQL. */
export type Row = Readonly<Record<string, unknown>>

/** One entry for each template in the code. */
const texts = new WeakMap<TemplateStringsArray, string>()

/** The text of a statement from its template, with a parameter between any two parts. */
export function toStatement(parts: TemplateStringsArray): string {
  let text = texts.get(parts)
  if (text === undefined) {
    text = parts.reduce((before, part, index) => `${before}$${index}${part}`)
    texts.set(parts, text)
  }
  return text
}

/** A statement with a parameter for each value. */
export function sql(parts: TemplateStringsArray, ...values: Value[]): Statement {
  return { text: toStatement(parts), values }
}

/** The number of a column that may be NULL. */
export function toNumber(value: unknown): number | undefined {
  return value === null ? undefined : Number(value)
}

/** The text of a column that may be NULL. */
export function toText(value: unknown): string | undefined {
  return value === null ? undefined : String(value)
}
