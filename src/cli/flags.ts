/** Flags that several commands have, as the arguments of commander's `option`. */
export const databaseFlag = [
  '--database <url>',
  'sqlite:PATH or postgres://… (DATABASE_URL, sqlite:data/plant-store.db)',
] as const

/** Only the service can use a store in memory. */
export const servedDatabaseFlag = [
  '--database <url>',
  'sqlite:PATH, sqlite::memory: or postgres://… (DATABASE_URL, sqlite:data/plant-store.db)',
] as const

/** The address of a store in memory. */
export const inMemory = 'sqlite::memory:'

export const createFlag = ['--create', 'make the store where there is none'] as const

export const quietFlag = ['--quiet', 'show no progress'] as const

export const jsonFlag = ['--json', 'print JSON'] as const

export interface JsonFlags {
  readonly json?: boolean
}

/** The names in a list with commas, in the order of all names; undefined if one is unknown. */
export function pickNames<Name extends string>(
  list: string,
  all: readonly Name[],
): Name[] | undefined {
  const wanted = list.split(',').map((part) => part.trim())
  const isKnown = wanted.every((name) => (all as readonly string[]).includes(name))
  return isKnown ? all.filter((name) => wanted.includes(name)) : undefined
}

/** How to keep a password out of the list of processes. */
export const passwordHelp = `
Other users can see the arguments of a command. Leave the password out of
postgres://USER@HOST/… and set PGPASSWORD, or PGPASSFILE with lines of
host:port:database:user:password.`

/** Settings of `serve` that have no flag. */
export const environmentHelp = `
Environment variables without a flag:
  PLANT_STORE_TOKEN  an additional token of your choice: 20 or more visible
                     ASCII characters; PLANT_STORE_TOKEN_FILE names its file
  AUTH_ISSUER        an OpenID provider whose JSON Web Tokens are accepted, for
                     AUTH_AUDIENCE
  PGPASSWORD         the password for a postgres:// address without one;
                     PGPASSFILE names a file
  PUBLIC_URL         the address that clients use; without it, Location and Link
                     are relative
  CORS_ORIGIN        origins that may call from a browser: * (all) or a list
  TRUST_PROXY        number of trusted proxies in front, for client addresses in
                     the log (0)
  RATE_LIMIT         requests that a token may make, such as 600/m (no limit)
  JOURNAL_KEEP       how long changes can be read at /events, such as 12h, or
                     off (7d)
  JOURNAL_MAX        how large the journal of changes may become, such as 512MiB
                     (1GiB)
  LOG_LEVEL          fatal, error, warn, info, debug, trace or silent (info)`
