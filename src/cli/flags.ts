/** Flags that several commands have, as the arguments of commander's `option`. */
export const databaseFlag = [
  '--database <url>',
  'sqlite:PATH, sqlite::memory: or postgres://… (DATABASE_URL, sqlite:data/plant-store.db)',
] as const

export const createFlag = ['--create', 'make the store where there is none'] as const

export const quietFlag = ['--quiet', 'show no progress'] as const

export const jsonFlag = ['--json', 'print JSON'] as const

/** How to keep a password out of the list of processes. */
export const passwordHelp = `
Other users can see the arguments of a command. Leave the password out of postgres://USER@HOST/…
and set PGPASSWORD, or PGPASSFILE with lines of host:port:database:user:password.`
