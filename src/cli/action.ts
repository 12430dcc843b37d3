import { type Config, type Environment, type Flags, readConfig } from '../config.ts'
import type { Terminal } from './terminal.ts'

/** A command on a store: it takes its arguments and flags, the configuration and the terminal. */
type Run<Given extends readonly unknown[]> = (
  ...all: [...Given, config: Config, terminal: Terminal]
) => Promise<void>

/** Makes actions for commander. The code of a command is loaded when the command is called. */
export function buildActions(env: Environment, terminal: Terminal) {
  return <Given extends readonly unknown[]>(load: () => Promise<Run<Given>>) =>
    async (...given: unknown[]): Promise<void> => {
      // Commander adds the command itself after the arguments and the flags.
      const own = given.slice(0, -1)
      const run = await load()
      await run(...(own as unknown as Given), readConfig(own.at(-1) as Flags, env), terminal)
    }
}
