import type { Config } from '../../config.ts'
import { examineStore } from '../../store/examine.ts'
import { CommandFailed, exitCodes } from '../exit.ts'
import type { JsonFlags } from '../flags.ts'
import { toPrintable } from '../printable.ts'
import type { Terminal } from '../terminal.ts'
import { requireExisting } from './location.ts'

/** Examines a store, and says what to do. Ends with 1 where there is something to do. */
export async function checkStore(
  flags: JsonFlags,
  config: Config,
  terminal: Terminal,
): Promise<void> {
  requireExisting(config)
  const findings = await examineStore(config.storeLocation)
  const lines = findings.map(
    ({ subject, state, message }) =>
      `${state.padEnd(6)} ${subject.padEnd(12)} ${toPrintable(message)}`,
  )
  await terminal.print(`${flags.json ? JSON.stringify(findings, null, 2) : lines.join('\n')}\n`)
  if (findings.some(({ state }) => state === 'to do')) throw new CommandFailed(exitCodes.toDo, '')
}
