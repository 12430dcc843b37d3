import type { JournalRow } from '../journal.ts'
import type { Sql } from './pools.ts'

// A row of the journal keeps its changes as the text of a `JournalRow`. A row of several creates
// has no text: it keeps the columns as arrays, as they were inserted.

/**
 * Writes a row, if the journal is on. It must be the last statement that can wait (see `Horizon`),
 * and come after those that change plants: see `setJournaling`.
 */
export async function writeRow(sql: Sql, { at, nonce, count, changes }: JournalRow): Promise<void> {
  await sql`
    INSERT INTO plant_store.journal (at, nonce, count, changes)
    SELECT ${at}::bigint, ${nonce}::integer, ${count}::integer, ${changes}::text
    FROM plant_store.journal_life WHERE id IS NOT NULL`
}

/**
 * How many bytes the changes of a row take in the store, which the server knows without reading
 * them. As JSON, arrays take up to six times as many.
 */
export function storedBytes(sql: Sql) {
  return sql`coalesce(pg_catalog.octet_length(changes), pg_catalog.pg_column_size(ids)
    + pg_catalog.pg_column_size(names) + pg_catalog.pg_column_size(tags)
    + pg_catalog.pg_column_size(token_ids))`
}

/** The changes of a row as text, which the server makes from the arrays of several creates. */
export function changesAsText(sql: Sql) {
  return sql`coalesce(changes, pg_catalog.concat(
    '{"k":["c"],"t":', pg_catalog.to_json(token_ids), ',"i":', pg_catalog.to_json(ids),
    ',"n":', pg_catalog.to_json(names), ',"g":', pg_catalog.to_json(tags), '}'))`
}
