import type { Config, Environment, StoreConfig } from '../config.ts'
import type { Store } from '../store/store.ts'
import { type Flags, text, type ValuesOf } from './flags.ts'
import type { Terminal } from './terminal.ts'

/**
 * What a command gets besides its arguments and flags, by what it needs. It reads no other setting:
 * a mistake in one that it does not need does not matter.
 */
interface Given {
  nothing: unknown
  /** Where the store is. */
  location: { readonly config: StoreConfig }
  /** The store, open, which must exist. It is closed after the command. */
  store: { readonly config: StoreConfig; readonly store: Store }
  /** The same, and it is made if it is named, or with `--create`. */
  'new store': { readonly config: StoreConfig; readonly store: Store }
  /** Every setting of the service. */
  service: { readonly config: Config }
}

export type Need = keyof Given

/** A command that is being run. */
export type Call<Table extends Flags = Flags, What extends Need = 'store'> = Given[What] & {
  readonly args: readonly string[]
  readonly flags: ValuesOf<Table>
  readonly env: Environment
  readonly terminal: Terminal
}

/** What a command prints. How that is done is the same for all of them. */
export interface Printed {
  /** The result for people, on standard output. */
  readonly text?: string
  /** The result with `--json`. */
  readonly json?: unknown
  /** A sentence for people, on standard error, where there is no result; not with `--quiet`. */
  readonly note?: string
  /** Sentences on standard error, after the result. */
  readonly remarks?: readonly string[]
  /** Undoes what was made: the result has a secret that is shown once, and could not be printed. */
  readonly undo?: () => Promise<unknown>
  /** How the command ends, after all of that. */
  readonly failure?: unknown
}

/** A command of the table. */
export interface Command<Table extends Flags = Flags, What extends Need = Need> {
  /** What it is for. */
  readonly about: string
  /** Its arguments, as the help shows them. */
  readonly args?: Readonly<Record<string, string>>
  readonly flags: Table
  readonly needs: What
  /** Text below its help. */
  readonly help?: string
  /** Loads its function when it is called, so that small commands start without the HTTP server. */
  readonly load: () => Promise<(call: Call<Table, What>) => Promise<Printed>>
}

/** Declares a command: its function gets the values of its flags, and what it needs. */
export function command<Table extends Flags, What extends Need>(
  declared: Command<Table, What>,
): Command {
  const { needs, flags } = declared
  return { ...declared, flags: { ...databaseFlags[needs], ...flags } } as unknown as Command
}

const defaultStore = '(DATABASE_URL, sqlite:data/plant-store.db)'
const database = text('--database <url>', `sqlite:PATH or postgres://… ${defaultStore}`)

/** The flag that names the store. Only the service can use one in memory. */
const databaseFlags: Record<Need, Flags> = {
  nothing: {},
  location: { database },
  store: { database },
  'new store': { database },
  service: {
    database: text(
      '--database <url>',
      `sqlite:PATH, sqlite::memory: or postgres://… ${defaultStore}`,
    ),
  },
}

/** The values of flags that are the same for all commands, and any others. */
export interface CommonValues {
  readonly json?: boolean
  readonly quiet?: boolean
  readonly create?: boolean
  readonly demo?: boolean
  readonly database?: string
}

/** Prints what a command has returned, and fails with its failure. */
export async function print(
  printed: Printed,
  flags: CommonValues,
  terminal: Terminal,
): Promise<void> {
  const { text, json, note, remarks = [], undo, failure } = printed
  const isJson = flags.json === true && json !== undefined
  const result = isJson ? JSON.stringify(json, null, 2) : text
  if (result !== undefined) {
    await terminal.print(result.endsWith('\n') ? result : `${result}\n`).catch(async (error) => {
      // Nobody has seen the secret.
      await undo?.()
      throw error
    })
  } else if (note !== undefined && !flags.quiet) terminal.tell(note)
  for (const remark of remarks) terminal.tell(remark)
  if (failure !== undefined) throw failure
}
