declare module 'pgpass' {
  interface Server {
    host: string
    port: number
    database?: string | undefined
    user?: string | undefined
  }
  /** Finds the password for a server in the file that PGPASSFILE names, or in ~/.pgpass. */
  function pgpass(server: Server, onFound: (password: string | undefined) => void): void
  export = pgpass
}
