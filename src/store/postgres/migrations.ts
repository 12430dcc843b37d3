/**
 * The schema, step by step. A released step is never edited: add another one. Steps run with
 * `search_path` set to `pg_catalog`, so that no unqualified name finds an object of another user.
 */
export const migrations: readonly string[] = [
  `CREATE TABLE plant_store.plants (
     id bigint PRIMARY KEY,
     name text NOT NULL,
     tag text,
     version bigint NOT NULL
   );
   CREATE TABLE plant_store.tokens (
     id text PRIMARY KEY,
     hash bytea NOT NULL UNIQUE,
     name text NOT NULL,
     scopes text NOT NULL,
     created_at bigint NOT NULL,
     expires_at bigint,
     revoked_at bigint,
     last_used_at bigint
   );
   -- Of several processes that start at once, the second looks when the first has finished: each statement of a
   -- function sees what was committed before it.
   CREATE FUNCTION plant_store.add_first_token(
     new_id text, new_hash bytea, new_name text, new_scopes text, new_created_at bigint
   ) RETURNS boolean LANGUAGE plpgsql AS $$
   BEGIN
     PERFORM pg_advisory_xact_lock(1886155636);
     INSERT INTO plant_store.tokens (id, hash, name, scopes, created_at)
     SELECT new_id, new_hash, new_name, new_scopes, new_created_at
     WHERE NOT EXISTS (SELECT FROM plant_store.tokens)
       AND NOT EXISTS (SELECT FROM plant_store.plants);
     RETURN FOUND;
   END $$;
   CREATE TABLE plant_store.token_revision (revision bigint NOT NULL);
   INSERT INTO plant_store.token_revision VALUES (0);`,
  // By a hash of the tag, because a B-tree cannot index a long text.
  `CREATE INDEX plants_by_tag ON plant_store.plants (hashtextextended(tag, 0), id) WHERE tag IS NOT NULL;
   CREATE TABLE plant_store.keys (
     token_id text NOT NULL,
     key text NOT NULL,
     fingerprint bytea NOT NULL,
     version bigint NOT NULL,
     used_at bigint NOT NULL,
     PRIMARY KEY (token_id, key)
   );
   CREATE INDEX keys_by_use ON plant_store.keys (used_at);`,
  // By the tag itself, or by its SHA-256 if that is shorter, so that nobody can make two tags share
  // a key: that of a short tag has at most 31 bytes, that of a long one 32. Both functions ignore
  // the caller's search_path: the first is bound when it is created, the second sets its own.
  `DROP INDEX plant_store.plants_by_tag;
   CREATE FUNCTION plant_store.tag_key(tag text) RETURNS bytea LANGUAGE sql IMMUTABLE PARALLEL SAFE
   RETURN CASE WHEN octet_length(tag) < 32 THEN decode(replace(tag, '\\', '\\\\'), 'escape')
     ELSE sha256(decode(replace(tag, '\\', '\\\\'), 'escape')) END;
   CREATE INDEX plants_by_tag ON plant_store.plants (plant_store.tag_key(tag), id)
     WHERE tag IS NOT NULL;
   CREATE OR REPLACE FUNCTION plant_store.add_first_token(
     new_id text, new_hash bytea, new_name text, new_scopes text, new_created_at bigint
   ) RETURNS boolean LANGUAGE plpgsql SET search_path = pg_catalog AS $$
   BEGIN
     PERFORM pg_advisory_xact_lock(1886155636);
     INSERT INTO plant_store.tokens (id, hash, name, scopes, created_at)
     SELECT new_id, new_hash, new_name, new_scopes, new_created_at
     WHERE NOT EXISTS (SELECT FROM plant_store.tokens)
       AND NOT EXISTS (SELECT FROM plant_store.plants);
     RETURN FOUND;
   END $$;`,
  // The function without the last characters stays for processes of an older release.
  `ALTER TABLE plant_store.tokens ADD COLUMN last_four text;
   CREATE FUNCTION plant_store.add_first_token(
     new_id text, new_hash bytea, new_name text, new_scopes text, new_created_at bigint,
     new_last_four text
   ) RETURNS boolean LANGUAGE plpgsql SET search_path = pg_catalog AS $$
   BEGIN
     PERFORM pg_advisory_xact_lock(1886155636);
     INSERT INTO plant_store.tokens (id, hash, name, scopes, created_at, last_four)
     SELECT new_id, new_hash, new_name, new_scopes, new_created_at, new_last_four
     WHERE NOT EXISTS (SELECT FROM plant_store.tokens)
       AND NOT EXISTS (SELECT FROM plant_store.plants);
     RETURN FOUND;
   END $$;`,
  // A row for each commit. `journal_life` has the journal id, or NULL while the journal is off, and
  // the row with which it begins, which has no changes. Rows are short-lived and rarely read, so
  // they are not compressed and mostly stored inline.
  `CREATE SEQUENCE plant_store.journal_seq;
   CREATE TABLE plant_store.journal (
     seq bigint PRIMARY KEY,
     at bigint NOT NULL,
     nonce integer NOT NULL,
     count integer NOT NULL,
     changes text NOT NULL
   ) WITH (toast_tuple_target = 8160);
   ALTER TABLE plant_store.journal ALTER COLUMN changes SET STORAGE EXTERNAL;
   INSERT INTO plant_store.journal VALUES (nextval('plant_store.journal_seq'),
     extract(epoch FROM now()) * 1000, floor(random() * 2147483647), 0, '');
   CREATE TABLE plant_store.journal_life (id text, since bigint NOT NULL);
   INSERT INTO plant_store.journal_life
   SELECT left(replace(gen_random_uuid()::text, '-', ''), 12), seq FROM plant_store.journal;`,
  `CREATE TABLE plant_store.receivers (
     id text PRIMARY KEY,
     url text NOT NULL,
     types text NOT NULL,
     secret text NOT NULL,
     previous_secret text,
     previous_until bigint,
     state text NOT NULL,
     reason text,
     created_at bigint NOT NULL,
     position text NOT NULL,
     ahead text NOT NULL,
     last_success_at bigint,
     last_failure_at bigint,
     last_failure text,
     failing_since bigint,
     lease_owner text,
     lease_until bigint NOT NULL DEFAULT 0,
     lease_epoch bigint NOT NULL DEFAULT 0
   );
   CREATE TABLE plant_store.deliveries (
     sequence bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
     receiver_id text NOT NULL,
     position text NOT NULL,
     type text NOT NULL,
     at bigint NOT NULL,
     plant_id bigint NOT NULL,
     name text NOT NULL,
     tag text,
     attempts integer NOT NULL,
     due_at bigint,
     last_status integer,
     last_error text,
     UNIQUE (receiver_id, position)
   );
   CREATE TABLE plant_store.receiver_revision (revision bigint NOT NULL);
   INSERT INTO plant_store.receiver_revision VALUES (0);`,
  // The identity of the database to which the receivers were added. In a copy they are paused.
  'ALTER TABLE plant_store.receiver_revision ADD COLUMN home text;',
  // `place` sorts deliveries in journal order: the row and the line of a position, zero-padded.
  // Deliveries get a body; the order in which they were added is no longer needed.
  `ALTER TABLE plant_store.deliveries ADD COLUMN place text COLLATE "C", ADD COLUMN body text;
   UPDATE plant_store.deliveries SET
     place = lpad(split_part(position, '-', 2), 10, '0') ||
       lpad(split_part(position, '-', 3), 6, '0'),
     body = '{"id":' || plant_id::text || ',"name":' || to_json(name)::text ||
       CASE WHEN tag IS NULL THEN '' ELSE ',"tag":' || to_json(tag)::text END || '}';
   ALTER TABLE plant_store.deliveries DROP COLUMN sequence, DROP COLUMN name, DROP COLUMN tag,
     DROP CONSTRAINT deliveries_receiver_id_position_key,
     ALTER COLUMN place SET NOT NULL, ALTER COLUMN body SET NOT NULL,
     ADD PRIMARY KEY (receiver_id, place);`,
  // The source of a copy, the position up to which it is in sync (none while it is filled), and the
  // number of its writes, by which two processes notice each other.
  `CREATE TABLE plant_store.followed (source text, position text, revision bigint NOT NULL);
   INSERT INTO plant_store.followed VALUES (NULL, NULL, 0);`,
  // A copy is an ordinary store.
  'DROP TABLE plant_store.followed;',
]
