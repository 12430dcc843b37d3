import type { Sql } from '../../src/store/postgres/sql.ts'

/** Stands in for `src/store/postgres/schema.ts`: the simulated server has the schema. */
export async function prepareSchema(): Promise<undefined> {
  return undefined
}

export async function renewIfCopied(): Promise<void> {}

export async function requirePrimary(sql: Sql): Promise<void> {
  await sql`SELECT pg_catalog.pg_is_in_recovery() AS is_standby`
}
