import type { Command } from 'commander'
import { type Config, type Environment, type Flags, readConfig } from '../config.ts'
import { databaseFlag } from './flags.ts'
import type { Terminal } from './terminal.ts'

/** A command on a store: it takes its arguments and flags, the configuration and the terminal. */
export type Run<Given extends readonly unknown[]> = (
  ...all: [...Given, config: Config, terminal: Terminal]
) => Promise<void>

/** Adds commands on the store that `--database` names. Each is loaded when it is called. */
export function addTo(group: Command, env: Environment, terminal: Terminal) {
  return <Given extends readonly unknown[]>(name: string, load: () => Promise<Run<Given>>) =>
    group
      .command(name)
      .option(...databaseFlag)
      .action(async (...given: unknown[]) => {
        // Commander adds the command itself after the arguments and the flags.
        const own = given.slice(0, -1)
        const run = await load()
        await run(...(own as unknown as Given), readConfig(own.at(-1) as Flags, env), terminal)
      })
}
