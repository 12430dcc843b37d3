import type { StoreConfig } from '../config.ts'
import { Failure } from '../contract/errors.ts'
import type { ConflictRule } from '../contract/parameters.ts'
import { openStore } from '../store/open.ts'
import type { Store } from '../store/store.ts'
import { openDryRun } from '../transfer/dry-run.ts'
import { type Entry, UnreadableFile } from '../transfer/entry.ts'
import { decompress } from '../transfer/gunzip.ts'
import { type Imported, importEntries, type Put, putInto } from '../transfer/import.ts'
import { buildReader, readPlants } from '../transfer/read.ts'
import {
  countLines,
  countRefused,
  describeCounts,
  describeFailed,
  describeRest,
  type Tally,
} from '../transfer/tally.ts'
import { CommandFailed, exitCodes } from './exit.ts'
import { type FileForm, type Input, toForm, withInput } from './files.ts'
import { tuneHeapForRows } from './memory.ts'
import { formatNumber, startProgress } from './progress.ts'
import { openRejects, requireRejectsFile } from './rejects.ts'
import { stopOnSignal, throwIfStopped } from './signals.ts'
import { exists, requireExistingOrNamed, toName } from './stores.ts'
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

const batchEntries = 2_000

/** Imports the plants of a file. The same command continues an import that was interrupted. */
export async function importPlants(
  file: string,
  flags: ImportFlags,
  context: Context,
): Promise<void> {
  tuneHeapForRows()
  const form = toForm(file, flags)
  const signal = stopOnSignal()
  await withInput(file, context.terminal, signal, async (input) => {
    const startedAt = performance.now()
    const imported = await importInput(input, form, signal, flags, context)
    report(imported, signal, startedAt, flags, context)
  })
}

async function importInput(
  input: Input,
  form: FileForm,
  signal: AbortSignal,
  flags: ImportFlags,
  { config, terminal }: Context,
): Promise<Imported> {
  const { onConflict: rule } = flags
  if (flags.rejects !== undefined) requireRejectsFile(flags.rejects, input, config.storeLocation)
  requireExistingOrNamed(config, flags)
  const target = flags.dryRun ? await openTrial(config, rule) : await openTarget(config, rule)
  const progress = startProgress('import', 'lines', terminal, flags)
  const reader = buildReader(form.format, form.delimiter)
  const entries = readPlants(decompress(input.chunks), reader)
  try {
    const rejects = await openRejects(flags.rejects, form, reader.header, progress)
    const imported = await importEntries(refuseOtherFormats(entries, form), {
      put: target.put,
      rule,
      signal,
      batchEntries,
      header: reader.header,
      onRefused: (entry, { message }) => rejects.add(entry, message),
      onSettled: ({ lastLine }) => progress.report(lastLine, input.part()),
    })
    // The last rejected lines are written with the end of the file.
    const unwritten = await rejects.close().catch((error: unknown) => error)
    return unwritten === undefined ? imported : { error: unwritten, ...imported }
  } finally {
    progress.stop()
    await target.close()
  }
}

/** Where an import puts its plants. */
interface Target {
  readonly put: Put
  close(): Promise<void>
}

async function openTarget({ storeLocation }: StoreConfig, rule: ConflictRule): Promise<Target> {
  const store = await openStore(storeLocation)
  return { put: putInto(store, rule), close: () => store.close() }
}

/** The target of a dry run: the store is only read, and is not made where there is none. */
async function openTrial(config: StoreConfig, rule: ConflictRule): Promise<Target> {
  const store = await openIfThere(config)
  const trial = await openDryRun(store, rule)
  return {
    put: trial.put,
    async close() {
      await trial.close()
      await store?.close()
    },
  }
}

async function openIfThere({ storeLocation }: StoreConfig): Promise<Store | undefined> {
  if (!exists(storeLocation)) return undefined
  let isNew = false
  return openStore(storeLocation, {
    onNew() {
      isNew = true
      throw new Error('there is no store, and a dry run makes none')
    },
  }).catch((error) => {
    if (isNew) return undefined
    throw error
  })
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

/** Tells what became of the lines, and ends the command with the exit code for that. */
function report(
  { tally, report: { ignoredColumns }, error }: Imported,
  signal: AbortSignal,
  startedAt: number,
  flags: ImportFlags,
  { config, terminal }: Context,
): void {
  const rejected = countRefused(tally)
  // A signal also ends the reading of the file.
  const failure = signal.aborted ? undefined : error
  const isWhole = error === undefined
  if (ignoredColumns !== undefined && !flags.quiet) {
    terminal.tell(`Columns that are not stored: ${ignoredColumns.join(', ')}.`)
  }
  if (
    failure === undefined ? signal.aborted || !flags.quiet || rejected > 0 : countLines(tally) > 0
  ) {
    const where = `${isWhole ? '' : 'so far '}into ${toName(config.storeLocation)}`
    const did = flags.dryRun
      ? `Dry run, nothing was stored. Would import ${where}`
      : `Imported ${where}`
    const hasFile = flags.rejects !== undefined && rejected > 0
    const hint = hasFile ? ` The rejected lines are in ${flags.rejects}.` : ''
    terminal.tell(`${did}: ${describeCounts(tally)} ${describeSpeed(tally, startedAt)}.${hint}`)
  }
  if (failure !== undefined) throw toImportFailure(failure, tally)
  throwIfStopped(
    signal,
    `Stopped after line ${tally.lastLine}. ${describeFailed(tally)}${howToContinue}`,
  )
  if (rejected > 0) throw new CommandFailed(exitCodes.data, '')
}

function describeSpeed(tally: Tally, startedAt: number): string {
  const seconds = (performance.now() - startedAt) / 1000
  return `(${seconds.toFixed(1)} s, ${formatNumber(Math.round(countLines(tally) / seconds))}/s)`
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
