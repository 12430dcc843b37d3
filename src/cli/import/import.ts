import { type Config, WrongConfig } from '../../config.ts'
import { Failure } from '../../contract/errors.ts'
import type { Format } from '../../contract/formats.ts'
import { explainFile } from '../../store/file-errors.ts'
import { type Entry, UnreadableFile } from '../../transfer/entry.ts'
import { readPlants } from '../../transfer/read.ts'
import { CommandFailed, exitCodes } from '../exit.ts'
import { type Input, toFormat, withInput } from '../files/input.ts'
import { expectManyShortLives } from '../memory.ts'
import { startProgress } from '../progress.ts'
import { stopOnSignal, throwIfStopped } from '../signals.ts'
import { requireExistingOrNamed } from '../stores/location.ts'
import type { Terminal } from '../terminal.ts'
import { putBatches, toBatches } from './batches.ts'
import { openHttpTarget } from './http-target.ts'
import { openRejects, requireRejectsFile } from './rejects.ts'
import { countRejected, describeReport, newReport } from './report.ts'
import { openStoreTarget } from './store-target.ts'
import type { OnConflictFlag, Target } from './target.ts'

export interface ImportFlags {
  readonly format?: string
  readonly onConflict: OnConflictFlag
  readonly rejects?: string
  readonly url?: string
  readonly token?: string
  readonly create?: boolean
  readonly quiet?: boolean
}

/** Imports the plants of a file. The same command continues an import that was interrupted. */
export async function importPlants(
  file: string,
  flags: ImportFlags,
  config: Config,
  terminal: Terminal,
): Promise<void> {
  expectManyShortLives()
  const format = toFormat(file, flags.format)
  const signal = stopOnSignal()
  await withInput(file, terminal, signal, (input) =>
    importInput({ file, format, input, signal }, flags, config, terminal),
  )
}

/** The file of an import, open, and the signal that stops it. */
interface Source {
  readonly file: string
  readonly format: Format
  readonly input: Input
  readonly signal: AbortSignal
}

async function importInput(
  { file, format, input, signal }: Source,
  flags: ImportFlags,
  config: Config,
  terminal: Terminal,
): Promise<void> {
  if (flags.rejects !== undefined) {
    requireRejectsFile(flags.rejects, input, config.storeLocation)
  }
  const target = await openTarget(flags, config, signal)
  const report = newReport()
  const progress = startProgress('import', 'lines', terminal, flags)
  try {
    const batches = toBatches(readPlants(input.chunks, format))
    const rejects = await openRejects(flags.rejects, progress)
    await putBatches(batches, target, signal, async (entries, outcomes) => {
      for (const [index, { is, reason }] of outcomes.entries()) {
        const entry = entries[index] as Entry
        report.counts[is]++
        if (reason !== undefined) await rejects.add(entry, reason)
        report.lastLine = entry.line
      }
      progress.report(report.lastLine, input.part())
    }).finally(rejects.close)
  } catch (error) {
    // A signal also aborts the requests in flight.
    if (!signal.aborted) throw explain(error, file, report.lastLine)
  } finally {
    progress.stop()
    await target.close()
  }
  const rejected = countRejected(report)
  if (!flags.quiet || signal.aborted || rejected > 0) {
    const isWhole = !signal.aborted
    terminal.tell(describeReport(report, target.name, { isWhole, rejects: flags.rejects }))
  }
  throwIfStopped(signal, `Stopped after line ${report.lastLine}. ${howToContinue}`)
  if (rejected > 0) throw new CommandFailed(exitCodes.data, '')
}

const howToContinue = 'Run the same command again to continue: stored lines are recognised.'

/** The store of the configuration, or a running service where `--url` names one. */
async function openTarget(
  { url, token, onConflict, create }: ImportFlags,
  config: Config,
  signal: AbortSignal,
): Promise<Target> {
  if (url === undefined) {
    if (token !== undefined) throw new WrongConfig(['--token needs --url.'])
    requireExistingOrNamed(config, { create })
    return openStoreTarget(config, onConflict)
  }
  const secret = token ?? config.operatorToken
  if (secret === undefined) {
    throw new WrongConfig(['--url needs a token: set PLANT_STORE_TOKEN or --token.'])
  }
  return openHttpTarget(url, secret, onConflict, signal)
}

function explain(error: unknown, file: string, lastLine: number): unknown {
  const rest = `Lines after ${lastLine} were not imported.`
  if (error instanceof UnreadableFile) {
    const message = lastLine === 0 ? error.message : `${error.message} ${rest}`
    return new CommandFailed(exitCodes.data, message)
  }
  if (error instanceof Failure) {
    const message = `${rest} ${error.message} ${howToContinue}`
    return new CommandFailed(exitCodes.inputOutput, message)
  }
  if (error instanceof CommandFailed && lastLine > 0) {
    return new CommandFailed(error.exitCode, `${error.message} ${rest} ${howToContinue}`)
  }
  if (error instanceof Error && 'syscall' in error) {
    const message = `Cannot read ${file}: ${explainFile(error)}. ${rest}`
    return new CommandFailed(exitCodes.inputOutput, message, { cause: error })
  }
  return error
}
