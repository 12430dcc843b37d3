import type { JournalRow } from '../journal.ts'
import type { VersionedPlant } from '../store.ts'
import { unnest } from './plants.ts'
import type { Sql } from './pools.ts'

/** What the server did with the plants that it was given. */
interface Counted {
  readonly inserted: string
  /** The ids of those that were inserted, if not all were. */
  readonly ids: string | null
}

/**
 * Inserts plants in one statement, with their row of the journal. Returns the ids that were taken;
 * undefined if there were none.
 */
export async function insertPlants(
  sql: Sql,
  plants: readonly VersionedPlant[],
  journaling: 'on' | 'off',
  toEntry: () => JournalRow,
): Promise<Set<bigint> | undefined> {
  if (plants.length === 0) return undefined
  const { inserted, ids } =
    (journaling === 'off' ? await insertUnjournaled(sql, plants) : undefined) ??
    (await insertWith(sql, plants, toEntry()))
  if (Number(inserted) === plants.length) return undefined
  const kept = new Set(ids?.split(','))
  return new Set(plants.map(({ id }) => id).filter((id) => !kept.has(String(id))))
}

/** Inserts plants unless the journal is on. Returns undefined if none was inserted. */
async function insertUnjournaled(
  sql: Sql,
  plants: readonly VersionedPlant[],
): Promise<Counted | undefined> {
  const [plant] = plants as [VersionedPlant]
  const counted = await (plants.length === 1 ? insertOne(sql, plant) : insertMany(sql, plants))
  return counted.inserted === '0' ? undefined : counted
}

function insertWith(
  sql: Sql,
  plants: readonly VersionedPlant[],
  entry: JournalRow,
): Promise<Counted> {
  const [plant] = plants as [VersionedPlant]
  return plants.length === 1 ? insertOneWith(sql, plant, entry) : insertManyWith(sql, plants, entry)
}

/** Inserts one plant, as plain values: they cost the server less than arrays. */
async function insertOne(sql: Sql, { id, name, tag, version }: VersionedPlant): Promise<Counted> {
  const rows = await sql`
    INSERT INTO plant_store.plants (id, name, tag, version)
    SELECT ${String(id)}::bigint, ${name}::text, ${tag ?? null}::text, ${String(version)}::bigint
    FROM plant_store.journal_life AS life WHERE life.id IS NULL
    ON CONFLICT (id) DO NOTHING RETURNING 1`
  return { inserted: String(rows.length), ids: null }
}

async function insertOneWith(
  sql: Sql,
  { id, name, tag, version }: VersionedPlant,
  { at, nonce, changes }: JournalRow,
): Promise<Counted> {
  const rows = await sql`
    WITH inserted AS (
      INSERT INTO plant_store.plants (id, name, tag, version)
      VALUES (${String(id)}::bigint, ${name}, ${tag ?? null}, ${String(version)}::bigint)
      ON CONFLICT (id) DO NOTHING RETURNING 1
    )
    INSERT INTO plant_store.journal (seq, at, nonce, count, changes)
    SELECT pg_catalog.nextval('plant_store.journal_seq'), ${at}::bigint, ${nonce}::integer, 1,
      ${changes}::text
    FROM inserted RETURNING 1`
  return { inserted: String(rows.length), ids: null }
}

async function insertMany(sql: Sql, plants: readonly VersionedPlant[]): Promise<Counted> {
  const [row] = await sql<[Counted]>`
    WITH inserted AS (
      INSERT INTO plant_store.plants (id, name, tag, version) SELECT * FROM ${unnest(sql, plants)}
      WHERE (SELECT id IS NULL FROM plant_store.journal_life)
      ON CONFLICT (id) DO NOTHING RETURNING id
    )
    SELECT CASE WHEN pg_catalog.count(*) < ${plants.length}::bigint
             THEN pg_catalog.string_agg(id::text, ',') END AS ids,
           pg_catalog.count(*) AS inserted
    FROM inserted`
  return row
}

/**
 * The number of the row is drawn above the aggregate: when every insert is done, and only if there
 * was one. The lines of plants that were not inserted are left out.
 */
async function insertManyWith(
  sql: Sql,
  plants: readonly VersionedPlant[],
  { at, nonce, changes }: JournalRow,
): Promise<Counted> {
  const [row] = await sql<[Counted]>`
    WITH inserted AS (
      INSERT INTO plant_store.plants (id, name, tag, version) SELECT * FROM ${unnest(sql, plants)}
      ON CONFLICT (id) DO NOTHING RETURNING id
    ), counted AS (
      SELECT CASE WHEN pg_catalog.count(*) < ${plants.length}::bigint
               THEN pg_catalog.string_agg(id::text, ',') END AS ids,
             pg_catalog.count(*) AS inserted
      FROM inserted
    ), sent AS (SELECT ${changes}::text AS changes), written AS (
      INSERT INTO plant_store.journal (seq, at, nonce, count, changes)
      SELECT pg_catalog.nextval('plant_store.journal_seq'), ${at}::bigint, ${nonce}::integer,
        inserted::integer,
        CASE WHEN ids IS NULL THEN sent.changes ELSE (
          SELECT '[' || pg_catalog.string_agg(line::text, ',' ORDER BY place) || ']'
          FROM pg_catalog.json_array_elements(sent.changes::json) WITH ORDINALITY AS l(line, place)
          JOIN inserted ON inserted.id = (line ->> 2)::bigint) END
      FROM counted, sent WHERE inserted > 0
    )
    SELECT ids, inserted FROM counted`
  return row
}
