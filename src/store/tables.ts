import { type Migration, UnusableStore } from './store.ts'

/** The version of the schema. It was 2 in release 1.0.0, 6 in 1.1.0 and 9 in 1.2.0. */
export const schemaVersion = 10

/**
 * The tables that both engines have, in the words of PostgreSQL. Each engine adds what only it has,
 * and its own table of plants.
 */
export const tokenTables = `
  CREATE TABLE plant_store.tokens (
    id text NOT NULL,
    hash bytea NOT NULL UNIQUE,
    name text NOT NULL,
    scopes text NOT NULL,
    created_at bigint NOT NULL,
    expires_at bigint,
    revoked_at bigint,
    last_used_at bigint,
    last_four text,
    PRIMARY KEY (id)
  );
  CREATE TABLE plant_store.token_revision (revision bigint NOT NULL);
  INSERT INTO plant_store.token_revision VALUES (0);
  CREATE TABLE plant_store.keys (
    token_id text NOT NULL,
    key text NOT NULL,
    fingerprint bytea NOT NULL,
    version bigint NOT NULL,
    used_at bigint NOT NULL,
    PRIMARY KEY (token_id, key)
  );
  CREATE INDEX keys_by_use ON plant_store.keys (used_at);`

/** `place` sorts deliveries in journal order: the row and the line of a position, zero-padded. */
export const deliveryTable = `
  CREATE TABLE plant_store.deliveries (
    receiver_id text NOT NULL,
    place text NOT NULL,
    position text NOT NULL,
    type text NOT NULL,
    at bigint NOT NULL,
    plant_id bigint NOT NULL,
    attempts integer NOT NULL,
    due_at bigint,
    last_status integer,
    last_error text,
    body text NOT NULL,
    PRIMARY KEY (receiver_id, place)
  );`

/**
 * `journal` has a row for each commit. `journal_life` has the journal id, or NULL while the journal
 * is off, and the row with which it begins, which has no changes.
 */
export const journalTables = `
  CREATE TABLE plant_store.journal (
    seq bigint PRIMARY KEY,
    at bigint NOT NULL,
    nonce integer NOT NULL,
    count integer NOT NULL,
    changes text NOT NULL
  );
  CREATE TABLE plant_store.journal_life (id text, since bigint NOT NULL);
  CREATE TABLE plant_store.receivers (
    id text NOT NULL,
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
    lease_epoch bigint NOT NULL DEFAULT 0,
    PRIMARY KEY (id)
  );
  CREATE TABLE plant_store.receiver_revision (revision bigint NOT NULL);
  INSERT INTO plant_store.receiver_revision VALUES (0);
  ${deliveryTable}`

/** What brings a store of each version to the schema: 0 is a new one, the others were released. */
export type Upgrades = Readonly<Record<number, readonly string[]>>

/** The steps that bring a store of a version to the schema. */
export function chooseSteps(upgrades: Upgrades, version: number): readonly string[] {
  const steps = version === schemaVersion ? [] : upgrades[version]
  if (steps === undefined) throw new Error(`No release has made a store of schema ${version}.`)
  return steps
}

/** The migration from a version, which began at this time; undefined if there was none. */
export function toMigration(from: number, startedAt: number): Migration | undefined {
  if (from === 0 || from === schemaVersion) return undefined
  return { from, to: schemaVersion, durationMs: Math.ceil(performance.now() - startedAt) }
}

/** Refuses the schema of a newer release. */
export function requireKnown(version: number, store: string): void {
  if (version <= schemaVersion) return
  throw new UnusableStore(
    `${store} was written by a newer release (schema ${version}, this one knows ` +
      `${schemaVersion}). Use that release, or another DATABASE_URL.`,
  )
}
