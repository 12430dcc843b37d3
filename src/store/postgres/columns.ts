import type { VersionedPlant } from '../store.ts'
import { toIntegerArray, toTextArray } from './arrays.ts'
import type { Sql } from './pools.ts'

/**
 * Runs a statement with plants as `$1` to `$4`, an array for each column, and with others after
 * them. Each is sent once: a template of the driver sends a value again wherever it is used.
 */
export function runWithPlants<Row extends object>(
  sql: Sql,
  statement: string,
  plants: readonly VersionedPlant[],
  others: readonly (string | number)[] = [],
) {
  const ids = toIntegerArray(plants.map(({ id }) => id))
  const names = toTextArray(plants.map(({ name }) => name))
  const tags = toTextArray(plants.map(({ tag = null }) => tag))
  const versions = toIntegerArray(plants.map(({ version }) => version))
  const values = [ids, names, tags, versions, ...others]
  return sql.unsafe<Row[]>(statement, values, { prepare: true })
}

/**
 * The plants of `$1` to `$4` as rows, if a condition is true. They come in the order of their ids,
 * so that two batches of creates never lock each other out. As a function in FROM, `unnest` would
 * store them before they are sorted.
 */
export function selectPlants(condition = 'TRUE'): string {
  return `
    SELECT pg_catalog.unnest($1::bigint[]) AS id, pg_catalog.unnest($2::text[]) AS name,
      pg_catalog.unnest($3::text[]) AS tag, pg_catalog.unnest($4::bigint[]) AS version
    WHERE ${condition} ORDER BY id`
}
