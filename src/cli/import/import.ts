import type { Config } from '../../config.ts'
import type { ConflictRule } from '../../contract/parameters.ts'
import { putBatches, toBatches } from '../../transfer/batches.ts'
import type { Entry } from '../../transfer/entry.ts'
import { decompress } from '../../transfer/gunzip.ts'
import { linesOfFiles } from '../../transfer/lines.ts'
import { buildReader, readPlants } from '../../transfer/read.ts'
import {
  countFailed,
  countLines,
  countRefused,
  countSettled,
  describeFailed,
  newTally,
} from '../../transfer/tally.ts'
import { CommandFailed, exitCodes } from '../exit.ts'
import { type Input, withInput } from '../files/input.ts'
import { expectManyShortLives } from '../memory.ts'
import { startProgress } from '../progress.ts'
import { findService, type ServiceFlags } from '../service.ts'
import { stopOnSignal, throwIfStopped } from '../signals.ts'
import { requireExistingOrNamed } from '../stores.ts'
import { describePlainHttp, type Terminal } from '../terminal.ts'
import { explain, howToContinue } from './explain.ts'
import { type FileForm, refuseOtherFormats, toForm } from './form.ts'
import { openRejects, requireRejectsFile } from './rejects.ts'
import { describeReport } from './report.ts'
import { dryTarget, type Target } from './target.ts'

export interface ImportFlags extends ServiceFlags {
  readonly format?: string
  readonly delimiter?: string
  readonly onConflict: ConflictRule
  readonly rejects?: string
  readonly create?: boolean
  readonly dryRun?: boolean
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
  const form = toForm(file, flags)
  const signal = stopOnSignal()
  await withInput(file, terminal, signal, (input) =>
    importInput({ file, form, input, signal }, flags, config, terminal),
  )
}

/** The file of an import, open, and the signal that stops it. */
interface Source {
  readonly file: string
  readonly form: FileForm
  readonly input: Input
  readonly signal: AbortSignal
}

async function importInput(
  { file, form, input, signal }: Source,
  flags: ImportFlags,
  config: Config,
  terminal: Terminal,
): Promise<void> {
  if (flags.rejects !== undefined) {
    requireRejectsFile(flags.rejects, input, config.storeLocation)
  }
  const target = await openTarget(flags, config, signal)
  const warning =
    flags.url && !flags.dryRun && describePlainHttp('the token and the plants', flags.url)
  if (warning) terminal.tell(warning)
  const { bounds } = target
  const tally = newTally()
  const startedAt = performance.now()
  const progress = startProgress('import', 'lines', terminal, flags)
  const reader = buildReader(form.format, form.delimiter)
  let failure: { readonly error: unknown } | undefined
  try {
    const entries = readPlants(decompress(input.chunks), reader, linesOfFiles)
    const batches = toBatches(refuseOtherFormats(entries, form), bounds)
    const rejects = await openRejects(flags.rejects, form, reader.header, progress)
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
    if (!signal.aborted) failure = { error: explain(error, file, tally) }
  } finally {
    progress.stop()
    await target.close()
  }
  const isWhole = failure === undefined && !signal.aborted
  const rejected = countRefused(tally)
  const hasNews =
    failure === undefined ? !isWhole || !flags.quiet || rejected > 0 : countLines(tally) > 0
  if (hasNews) {
    const state = flags.dryRun ? 'dry run' : isWhole ? 'whole' : 'so far'
    const { rejects } = flags
    terminal.tell(describeReport(tally, target.name, { state, rejects, startedAt }))
  }
  if (failure !== undefined) throw failure.error
  throwIfStopped(
    signal,
    `Stopped after line ${tally.lastLine}. ${describeFailed(tally)}${howToContinue}`,
  )
  if (rejected > 0) throw new CommandFailed(exitCodes.data, '')
}

/** The store of the configuration, or a running service where `--url` names one. */
async function openTarget(
  flags: ImportFlags,
  config: Config,
  signal: AbortSignal,
): Promise<Target> {
  const { onConflict, create, dryRun } = flags
  if (dryRun) return dryTarget
  const service = findService(flags, config)
  if (service === undefined) {
    requireExistingOrNamed(config, { create })
    const { openStoreTarget } = await import('./store-target.ts')
    return openStoreTarget(config, onConflict)
  }
  const { openHttpTarget } = await import('./http-target.ts')
  return openHttpTarget(service.url, service.token, onConflict, signal)
}
