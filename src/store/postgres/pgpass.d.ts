declare module 'pgpass' {
  import type { Client } from 'pg'

  /** Finds the password for a server in the file that PGPASSFILE names, or in ~/.pgpass. */
  function pgpass(client: Client, onFound: (password: string | undefined) => void): void
  export = pgpass
}
