import type { StoreConfig } from '../config.ts'
import { Failure } from '../contract/errors.ts'
import type { ConflictRule } from '../contract/parameters.ts'
import { openStore } from '../store/open.ts'
import { type Put, putBatches, toBatches } from '../transfer/batches.ts'
import { type Entry, UnreadableFile } from '../transfer/entry.ts'
import { decompress } from '../transfer/gunzip.ts'
import { toOnConflict, toOutcome } from '../transfer/outcome.ts'
import { buildReader, readPlants } from '../transfer/read.ts'
import {
  countFailed,
  countLines,
  countRefused,
  countSettled,
  describeCounts,
  describeFailed,
  describeRest,
  newTally,
  type Tally,
} from '../transfer/tally.ts'
import { CommandFailed, exitCodes } from './exit.ts'
import { type FileForm, type Input, toForm, withInput } from './files.ts'
import { tuneHeapForRows } from './memory.ts'
import { formatNumber, type Progress, startProgress } from './progress.ts'
import { openRejects, requireRejectsFile } from './rejects.ts'
import { stopOnSignal, throwIfStopped } from './signals.ts'
import { requireExistingOrNamed, toName } from './stores.ts'
import type { Context } from './terminal.ts'

interface ImportFlags {
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
  context: Context,
): Promise<void> {
  tuneHeapForRows()
  const form = toForm(file, flags)
  const signal = stopOnSignal()
  await withInput(file, context.terminal, signal, (input) =>
    importInput({ form, input, signal }, flags, context),
  )
}

/** The file of an import, open, and the signal that stops it. */
interface Source {
  readonly form: FileForm
  readonly input: Input
  readonly signal: AbortSignal
}

async function importInput(source: Source, flags: ImportFlags, context: Context): Promise<void> {
  const { config, terminal } = context
  const { input, signal } = source
  if (flags.rejects !== undefined) requireRejectsFile(flags.rejects, input, config.storeLocation)
  const target = await openTarget(flags, config)
  const tally = newTally()
  const startedAt = performance.now()
  const progress = startProgress('import', 'lines', terminal, flags)
  let failure: unknown
  try {
    await putPlants(source, target, tally, flags, progress)
  } catch (error) {
    // A signal also ends the reading of the file.
    if (!signal.aborted) failure = toImportFailure(error, tally)
  } finally {
    progress.stop()
    await target.close()
  }
  const rejected = countRefused(tally)
  const hasNews =
    failure === undefined ? signal.aborted || !flags.quiet || rejected > 0 : countLines(tally) > 0
  if (hasNews) {
    const soFar = failure === undefined && !signal.aborted ? '' : 'so far '
    terminal.tell(describeReport(tally, `${soFar}into ${target.name}`, startedAt, flags))
  }
  if (failure !== undefined) throw failure
  throwIfStopped(
    signal,
    `Stopped after line ${tally.lastLine}. ${describeFailed(tally)}${howToContinue}`,
  )
  if (rejected > 0) throw new CommandFailed(exitCodes.data, '')
}

/** Puts the plants of the file into the target, and counts their outcomes. */
async function putPlants(
  { form, input, signal }: Source,
  { put }: Target,
  tally: Tally,
  flags: ImportFlags,
  progress: Progress,
): Promise<void> {
  const reader = buildReader(form.format, form.delimiter)
  const entries = readPlants(decompress(input.chunks), reader)
  const batches = toBatches(refuseOtherFormats(entries, form), batchEntries)
  const rejects = await openRejects(flags.rejects, form, reader.header, progress)
  await putBatches(batches, put, signal, {
    async onSettled(settled, outcomes) {
      countSettled(tally, settled, outcomes)
      for (const [index, { refusal }] of outcomes.entries()) {
        if (refusal !== undefined) await rejects.add(settled[index] as Entry, refusal.message)
      }
      progress.report(tally.lastLine, input.part())
    },
    onFailed: (failed, error) => countFailed(tally, failed, error),
  }).finally(rejects.close)
}

async function openTarget(flags: ImportFlags, config: StoreConfig): Promise<Target> {
  if (flags.dryRun) return dryTarget
  requireExistingOrNamed(config, flags)
  return openStoreTarget(config, flags.onConflict)
}

/** A file that does not begin with an object is another format: one message, not one per line. */
async function* refuseOtherFormats(
  groups: AsyncIterable<Entry[]>,
  { format }: FileForm,
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

const batchEntries = 2_000

/** Where an import puts its plants. */
interface Target {
  /** The store, as messages name it. */
  readonly name: string
  readonly put: Put
  close(): Promise<void>
}

/** The store of the configuration as the target of an import. */
async function openStoreTarget(config: StoreConfig, rule: ConflictRule): Promise<Target> {
  const store = await openStore(config.storeLocation)
  return {
    name: toName(config.storeLocation),
    async put(plants) {
      const outcomes = await store.importPlants(plants, toOnConflict(rule))
      return outcomes.map((outcome) => toOutcome(outcome, rule))
    },
    close: () => store.close(),
  }
}

/** The target of a dry run: takes every plant, and stores none. */
const dryTarget: Target = {
  name: 'nothing',
  put: async (plants) => plants.map(() => ({ kind: 'stored' })),
  async close() {},
}

/** The last line of an import: the number of lines with each outcome. */
function describeReport(
  tally: Tally,
  where: string,
  startedAt: number,
  { dryRun, rejects }: ImportFlags,
): string {
  const seconds = (performance.now() - startedAt) / 1000
  const hasFile = rejects !== undefined && countRefused(tally) > 0
  const hint = hasFile ? ` The rejected lines are in ${rejects}.` : ''
  const speed = `(${seconds.toFixed(1)} s, ${formatNumber(Math.round(countLines(tally) / seconds))}/s)`
  if (dryRun) {
    const { stored, invalid } = tally.counts
    return `Checked, and stored nothing: ${formatNumber(stored)} valid, ${formatNumber(invalid)} invalid ${speed}.${hint}`
  }
  return `Imported ${where}: ${describeCounts(tally)} ${speed}.${hint}`
}

const howToContinue = 'Run the same command again to continue: stored lines are recognised.'

/** Why an import ended early, what it has not done, and how to continue. */
function toImportFailure(error: unknown, tally: Tally): unknown {
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
  return error
}

function toHint({ delimiter }: UnreadableFile): string {
  if (delimiter === undefined) return ''
  return ` Use: --delimiter ${delimiter === '\t' ? 'tab' : `'${delimiter}'`}`
}
