/** The steps that build the schema. A released step is never edited: add another one. */
export const migrations: readonly string[] = [
  `CREATE TABLE plants (
     id INTEGER PRIMARY KEY,
     name TEXT NOT NULL,
     tag TEXT,
     version INTEGER NOT NULL
   ) STRICT;
   CREATE TABLE tokens (
     id TEXT PRIMARY KEY,
     hash BLOB NOT NULL UNIQUE,
     name TEXT NOT NULL,
     scopes TEXT NOT NULL,
     created_at INTEGER NOT NULL,
     expires_at INTEGER,
     revoked_at INTEGER,
     last_used_at INTEGER
   ) STRICT, WITHOUT ROWID;
   CREATE TABLE token_revision (revision INTEGER NOT NULL) STRICT;
   INSERT INTO token_revision VALUES (0);`,
  // The index holds the row id after each tag, so that a page of one tag is one stretch of it.
  `CREATE INDEX plants_by_tag ON plants (tag) WHERE tag IS NOT NULL;
   CREATE TABLE keys (
     token_id TEXT NOT NULL,
     key TEXT NOT NULL,
     fingerprint BLOB NOT NULL,
     version INTEGER NOT NULL,
     used_at INTEGER NOT NULL,
     PRIMARY KEY (token_id, key)
   ) STRICT, WITHOUT ROWID;
   CREATE INDEX keys_by_use ON keys (used_at);`,
  // By the beginning of the tag: with a tag of a megabyte in it, every look-up would read that.
  `DROP INDEX plants_by_tag;
   CREATE INDEX plants_by_tag ON plants (substr(tag, 1, 100)) WHERE tag IS NOT NULL;`,
  'ALTER TABLE tokens ADD COLUMN last_four TEXT;',
]
