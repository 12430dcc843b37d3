import { type Config, WrongConfig } from '../../config.ts'
import { Failure } from '../../contract/errors.ts'
import type { Format } from '../../contract/formats.ts'
import type { ConflictRule } from '../../contract/parameters.ts'
import { explainFile } from '../../store/file-errors.ts'
import { type BatchBounds, putBatches, toBatches } from '../../transfer/batches.ts'
import { type Entry, UnreadableFile } from '../../transfer/entry.ts'
import { decompress } from '../../transfer/gunzip.ts'
import { linesOfFiles } from '../../transfer/lines.ts'
import { readPlants } from '../../transfer/read.ts'
import {
  countFailed,
  countRefused,
  countSettled,
  describeRest,
  newTally,
  type Tally,
} from '../../transfer/tally.ts'
import { CommandFailed, exitCodes } from '../exit.ts'
import { type Input, toFormat, withInput } from '../files/input.ts'
import { expectManyShortLives } from '../memory.ts'
import { startProgress } from '../progress.ts'
import { stopOnSignal, throwIfStopped } from '../signals.ts'
import { requireExistingOrNamed } from '../stores/location.ts'
import type { Terminal } from '../terminal.ts'
import { openHttpTarget } from './http-target.ts'
import { openRejects, requireRejectsFile } from './rejects.ts'
import { describeReport } from './report.ts'
import { openStoreTarget } from './store-target.ts'
import type { Target } from './target.ts'

export interface ImportFlags {
  readonly format?: string
  readonly onConflict: ConflictRule
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
  const tally = newTally()
  const startedAt = performance.now()
  const progress = startProgress('import', 'lines', terminal, flags)
  try {
    const entries = readPlants(decompress(input.chunks), format, linesOfFiles)
    const batches = toBatches(refuseOtherFormats(entries, format), bounds)
    const rejects = await openRejects(flags.rejects, progress)
    await putBatches(batches, target.put, bounds, signal, {
      async onSettled(settled, outcomes) {
        countSettled(tally, settled, outcomes)
        for (const [index, { refusal }] of outcomes.entries()) {
          if (refusal !== undefined) await rejects.add(settled[index] as Entry, refusal.message)
        }
        progress.report(tally.lastLine, input.part())
      },
      onFailed: (failed, error) => countFailed(tally, failed, error),
    }).finally(rejects.close)
  } catch (error) {
    // A signal also ends the reading of the file.
    if (!signal.aborted) throw explain(error, file, tally)
  } finally {
    progress.stop()
    await target.close()
  }
  const rejected = countRefused(tally)
  if (!flags.quiet || signal.aborted || rejected > 0) {
    const isWhole = !signal.aborted
    const { rejects } = flags
    terminal.tell(describeReport(tally, target.name, { isWhole, rejects, startedAt }))
  }
  throwIfStopped(signal, `Stopped after line ${tally.lastLine}. ${howToContinue}`)
  if (rejected > 0) throw new CommandFailed(exitCodes.data, '')
}

const bounds: BatchBounds = { entries: 2_000, characters: 256 * 1024, inFlight: 2 }

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

/** A file that does not begin with an object is another format: one message, not one per line. */
async function* refuseOtherFormats(
  groups: AsyncIterable<Entry[]>,
  format: Format,
): AsyncGenerator<Entry[]> {
  let isFirst = format === 'ndjson'
  for await (const entries of groups) {
    const [first] = entries
    if (isFirst && first?.refusal !== undefined && !/^[ \t\r]*\{/.test(first.text)) {
      throw new UnreadableFile(40001, first.line, explainFormat(first.text))
    }
    if (first !== undefined) isFirst = false
    yield entries
  }
}

function explainFormat(text: string): string {
  const hint = text.trimStart().startsWith('[')
    ? "Convert a JSON array with: jq -c '.[]'"
    : 'For CSV, add --format csv.'
  return `This is not NDJSON, which has one JSON object per line. ${hint}`
}

function explain(error: unknown, file: string, tally: Tally): unknown {
  const { lastLine } = tally
  const rest = describeRest(tally)
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
