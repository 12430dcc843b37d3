import { Failure } from '../../contract/errors.ts'
import { explainFile } from '../../store/file-errors.ts'
import { UnreadableFile } from '../../transfer/entry.ts'
import { describeRest, type Tally } from '../../transfer/tally.ts'
import { CommandFailed, exitCodes } from '../exit.ts'

export const howToContinue = 'Run the same command again to continue: stored lines are recognised.'

/** Why an import ended early, what it has not done, and how to go on. */
export function explain(error: unknown, file: string, tally: Tally): unknown {
  const hasBegun = tally.lastLine > 0
  const rest = describeRest(tally)
  if (error instanceof UnreadableFile) {
    const message = hasBegun ? `${error.message} ${rest}` : `${error.message}${toHint(error)}`
    return new CommandFailed(exitCodes.data, message)
  }
  if (error instanceof Failure) {
    const message = `${error.fault} ${rest} ${howToContinue}`
    return new CommandFailed(exitCodes.inputOutput, message)
  }
  if (error instanceof CommandFailed && hasBegun) {
    return new CommandFailed(error.exitCode, `${error.message} ${rest} ${howToContinue}`)
  }
  if (error instanceof Error && 'syscall' in error) {
    const message = `Cannot read ${file}: ${explainFile(error)}. ${rest}`
    return new CommandFailed(exitCodes.inputOutput, message, { cause: error })
  }
  return error
}

function toHint({ delimiter }: UnreadableFile): string {
  if (delimiter === undefined) return ''
  return ` Use: --delimiter ${delimiter === '\t' ? 'tab' : `'${delimiter}'`}`
}
