/** The schema, one step after the other. A step that was released is never edited: add the next one. */
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
]
