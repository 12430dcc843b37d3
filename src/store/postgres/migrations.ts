import { journalTables, tokenTables, type Upgrades } from '../tables.ts'

const createPlants = `
  CREATE SCHEMA IF NOT EXISTS plant_store;
  CREATE TABLE plant_store.schema_version (version integer NOT NULL);
  INSERT INTO plant_store.schema_version VALUES (0);
  CREATE TABLE plant_store.plants (
    id bigint PRIMARY KEY,
    name text NOT NULL,
    tag text,
    version bigint NOT NULL
  );
  ${tokenTables}`

// By the tag itself, or by its SHA-256 if that is shorter, so that nobody can make two tags share a
// key: that of a short tag has at most 31 bytes, that of a long one 32. The function ignores the
// caller's search_path: it is bound when it is created.
const indexTags = `
  CREATE FUNCTION plant_store.tag_key(tag text) RETURNS bytea LANGUAGE sql IMMUTABLE PARALLEL SAFE
  RETURN CASE WHEN octet_length(tag) < 32 THEN decode(replace(tag, '\\', '\\\\'), 'escape')
    ELSE sha256(decode(replace(tag, '\\', '\\\\'), 'escape')) END;
  CREATE INDEX plants_by_tag ON plant_store.plants (plant_store.tag_key(tag), id)
    WHERE tag IS NOT NULL;`

// Rows of the journal are short-lived and rarely read, so they are not compressed and mostly stored
// inline. `home` is the identity of the database to which the receivers were added: in a copy they
// are paused.
const createJournal = `
  ${journalTables}
  ALTER TABLE plant_store.journal SET (toast_tuple_target = 8160),
    ALTER COLUMN changes SET STORAGE EXTERNAL;
  ALTER TABLE plant_store.deliveries ALTER COLUMN place TYPE text COLLATE "C";
  ALTER TABLE plant_store.receiver_revision ADD COLUMN home text;
  CREATE SEQUENCE plant_store.journal_seq;
  INSERT INTO plant_store.journal VALUES (nextval('plant_store.journal_seq'),
    extract(epoch FROM now()) * 1000, floor(random() * 2147483647), 0, '');
  INSERT INTO plant_store.journal_life
  SELECT left(replace(gen_random_uuid()::text, '-', ''), 12), seq FROM plant_store.journal;`

const addBodies = `
  ALTER TABLE plant_store.deliveries ADD COLUMN place text COLLATE "C", ADD COLUMN body text;
  UPDATE plant_store.deliveries SET
    place = lpad(split_part(position, '-', 2), 10, '0') ||
      lpad(split_part(position, '-', 3), 6, '0'),
    body = '{"id":' || plant_id::text || ',"name":' || to_json(name)::text ||
      CASE WHEN tag IS NULL THEN '' ELSE ',"tag":' || to_json(tag)::text END || '}';
  ALTER TABLE plant_store.deliveries DROP COLUMN sequence, DROP COLUMN name, DROP COLUMN tag,
    DROP CONSTRAINT deliveries_receiver_id_position_key,
    ALTER COLUMN place SET NOT NULL, ALTER COLUMN body SET NOT NULL,
    ADD PRIMARY KEY (receiver_id, place);`

// With which releases before 2.0.0 added the first token.
const dropFunctions = `
  DROP FUNCTION IF EXISTS plant_store.add_first_token(text, bytea, text, text, bigint),
    plant_store.add_first_token(text, bytea, text, text, bigint, text);`

/** Run with `search_path` set to `pg_catalog`, so that no object of another user is found. */
export const upgrades: Upgrades = {
  0: [createPlants, indexTags, createJournal],
  2: [
    'ALTER TABLE plant_store.tokens ADD COLUMN last_four text',
    'DROP INDEX plant_store.plants_by_tag',
    indexTags,
    createJournal,
    dropFunctions,
  ],
  6: ['ALTER TABLE plant_store.receiver_revision ADD COLUMN home text', addBodies, dropFunctions],
  // What the command `follow` of release 1.2.0 had copied.
  9: ['DROP TABLE plant_store.followed', dropFunctions],
}
