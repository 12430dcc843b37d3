import type { StoreConfig } from '../config.ts'
import { Failure } from '../contract/errors.ts'
import type { ConflictRule } from '../contract/parameters.ts'
import { openStore } from '../store/open.ts'
import type { Store } from '../store/store.ts'
import { openDryRun } from '../transfer/dry-run.ts'
import { type Entry, UnreadableFile } from '../transfer/entry.ts'
import { decompress } from '../transfer/gunzip.ts'
import { type Imported, importEntries, type Put, putInto } from '../transfer/import-entries.ts'
import { buildReader, readPlants } from '../transfer/read.ts'
import {
  countLines,
  countRefused,
  describeCounts,
  describeFailed,
  describeRest,
  type Tally,
} from '../transfer/tally.ts'
import type { Call, Printed } from './command.ts'
import { CommandFailed, exitCodes } from './exit.ts'
import { type FileForm, type Input, toForm, withInput } from './files.ts'
import type { importFlags } from './flag-tables.ts'
import { tuneHeapForRows } from './memory.ts'
import { formatNumber, startProgress } from './progress.ts'
import { openRejects, requireRejectsFile } from './rejects.ts'
import { stopOnSignal, toStopped } from './signals.ts'
import { exists, requireExistingOrNamed, toName } from './stores.ts'

type ImportCall = Call<typeof importFlags, 'location'>

const batchEntries = 2_000

/** Imports the plants of a file. The same command continues an import that was interrupted. */
export async function importPlants(call: ImportCall): Promise<Printed> {
  tuneHeapForRows()
  const [file = ''] = call.args
  const form = toForm(file, call.flags)
  const signal = stopOnSignal()
  return withInput(file, call.terminal, signal, async (input) => {
    const startedAt = performance.now()
    const imported = await importInput(input, form, signal, call)
    return toPrinted(imported, signal, startedAt, call)
  })
}

async function importInput(
  input: Input,
  form: FileForm,
  signal: AbortSignal,
  { flags, config, terminal }: ImportCall,
): Promise<Imported> {
  const { onConflict: rule = 'fail' } = flags
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
      onBatch: ({ lastLine }) => progress.report(lastLine, input.part()),
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

/** What became of the lines, and how the command ends. */
function toPrinted(
  { tally, report: { ignoredColumns }, error }: Imported,
  signal: AbortSignal,
  startedAt: number,
  { flags, config }: ImportCall,
): Printed {
  const rejected = countRefused(tally)
  // A signal also ends the reading of the file.
  const failure = signal.aborted ? toStop(signal, tally) : error && toImportFailure(error, tally)
  const isFailed = error !== undefined && !signal.aborted
  const hasNews = isFailed ? countLines(tally) > 0 : signal.aborted || !flags.quiet || rejected > 0
  const ignored = ignoredColumns?.join(', ')
  const where = `${error === undefined ? '' : 'so far '}into ${toName(config.storeLocation)}`
  const did = flags.dryRun ? 'Dry run, nothing was stored. Would import' : 'Imported'
  const hasFile = flags.rejects !== undefined && rejected > 0
  const hint = hasFile ? ` The rejected lines are in ${flags.rejects}.` : ''
  const counts = `${describeCounts(tally)} ${describeSpeed(tally, startedAt)}`
  return {
    remarks: [
      ...(ignored && !flags.quiet ? [`Columns that are not stored: ${ignored}.`] : []),
      ...(hasNews ? [`${did} ${where}: ${counts}.${hint}`] : []),
    ],
    failure: failure ?? (rejected > 0 ? new CommandFailed(exitCodes.data, '') : undefined),
  }
}

function toStop(signal: AbortSignal, tally: Tally): CommandFailed {
  const rest = `${describeFailed(tally)}${howToContinue}`
  return toStopped(signal, `Stopped after line ${tally.lastLine}. ${rest}`)
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
    const message = `${error.shortMessage} ${rest} ${howToContinue}`
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
