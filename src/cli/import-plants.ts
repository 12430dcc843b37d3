import { createReadStream, existsSync, statSync } from 'node:fs'
import { open } from 'node:fs/promises'
import { text as readText } from 'node:stream/consumers'
import { untilAborted } from '../../client/request.ts'
import { Failure } from '../contract/errors.ts'
import type { Format } from '../contract/formats.ts'
import { isSameFile } from '../paths.ts'
import type { StoreLocation } from '../store/open.ts'
import type { Store } from '../store/store.ts'
import { decompress } from '../transfer/gunzip.ts'
import {
  type Imported,
  importEntries,
  openDryRun,
  type Put,
  putInto,
} from '../transfer/import-entries.ts'
import { type Entry, type Reader, UnreadableFile } from '../transfer/lines.ts'
import { buildReader, readPlants } from '../transfer/read.ts'
import { describeCounts, describeFailed, describeRest, type Tally } from '../transfer/tally.ts'
import type { Call, Printed } from './commands.ts'
import { explainWrite, type Input, toFormat, withInput } from './files.ts'
import { stopOnSignal } from './signals.ts'
import { requireAsked, requireOtherFile, toName, withStore } from './stores.ts'
import {
  CommandFailed,
  exitCodes,
  formatNumber,
  startProgress,
  type Terminal,
  toPrintable,
} from './terminal.ts'

type ImportCall = Call<'import'>

const batchEntries = 2_000

/** Imports the plants of a file. The same command continues an import that was interrupted. */
export async function importPlants(call: ImportCall): Promise<Printed> {
  const { flags, config, terminal } = call
  const [file = ''] = call.args
  const { 'on-conflict': rule = 'fail', rejects: path } = flags
  const format = toFormat(file, flags)

  async function importInto(put: Put, input: Input): Promise<Printed> {
    const startedAt = performance.now()
    const report = startProgress('import', 'lines', call)
    const reader = buildReader(format, flags.delimiter)
    const rejects = await openRejects(path, format, reader.header, terminal)
    // Before this, nothing is stored, and a signal ends the process.
    const signal = stopOnSignal()
    const imported = await importEntries(readPlants(decompress(read(input, signal)), reader), {
      put,
      rule,
      signal,
      batchEntries,
      header: reader.header,
      onRefused: (entry, { message }) => untilAborted(rejects.add(entry, message), signal),
      onBatch: ({ lastLine }) => report(lastLine, input.part()),
    })
    rejects.close()
    return toPrinted(imported, signal, startedAt, call)
  }

  /** Without a store, a dry run makes none. */
  async function tryOn(store: Store | undefined, input: Input): Promise<Printed> {
    const trial = await openDryRun(store, rule)
    return importInto(trial.put, input).finally(trial.close)
  }

  return withInput(file, terminal, async (input) => {
    if (path !== undefined) await requireRejectsFile(path, input, config.storeLocation)
    const noStore = new Error('There is no store, and a dry run makes none.')
    const isTrial = flags['dry-run']

    function onNew(): void {
      requireAsked(config, flags)
      if (isTrial) throw noStore
    }

    const use = (store: Store) =>
      isTrial ? tryOn(store, input) : importInto(putInto(store, rule), input)
    return withStore(config.storeLocation, use, { onNew }).catch((error) => {
      if (error !== noStore) throw error
      return tryOn(undefined, input)
    })
  })
}

/** Reads the input until the signal, even while it waits for bytes that may never come. */
async function* read({ chunks }: Input, signal: AbortSignal): AsyncGenerator<Buffer> {
  const iterator = chunks[Symbol.asyncIterator]()
  for (;;) {
    const next = await untilAborted(iterator.next(), signal)
    if (next.done) return
    yield next.value
  }
}

/** The rejected lines have been reported already. */
const hasRejects = new CommandFailed(exitCodes.data, '')

/** What became of the lines, and how the command ends. */
function toPrinted(
  { error, ...tally }: Imported,
  signal: AbortSignal,
  startedAt: number,
  { flags, config }: ImportCall,
): Printed {
  const { lines, refusedInAll: rejected, ignoredColumns } = tally.report
  // A signal makes the reading fail as well.
  const isFailed = error !== undefined && !signal.aborted
  const hasNews = isFailed ? lines > 0 : signal.aborted || !flags.quiet || rejected > 0
  const ignored = ignoredColumns?.join(', ')
  const where = `${error === undefined ? '' : 'so far '}into ${toName(config.storeLocation)}`
  const did = flags['dry-run'] ? 'Dry run, nothing was stored. Would import' : 'Imported'
  const hasFile = flags.rejects !== undefined && rejected > 0
  const hint = hasFile ? ` The rejected lines are in ${flags.rejects}.` : ''
  const seconds = (performance.now() - startedAt) / 1000
  const speed = `${seconds.toFixed(1)} s, ${formatNumber(Math.round(lines / seconds))}/s`
  const counts = `${describeCounts(tally)} (${speed})`
  const stop = `Stopped after line ${tally.lastLine}. ${describeFailed(tally)}${howToContinue}`
  return {
    remarks: [
      ...(ignored && !flags.quiet ? [`Columns that are not stored: ${ignored}.`] : []),
      ...(hasNews ? [`${did} ${where}: ${counts}.${hint}`] : []),
      ...(signal.aborted ? [stop] : []),
    ],
    stoppedBy: signal.reason,
    failure: isFailed ? toImportFailure(error, tally) : rejected > 0 ? hasRejects : undefined,
  }
}

const howToContinue = 'Run the same command again to continue: stored lines are recognised.'

/** Why an import ended early, what it has not done, and how to continue. */
function toImportFailure(error: unknown, tally: Tally): unknown {
  const rest = describeRest(tally)
  if (error instanceof Failure) {
    const message = `${error.shortMessage} ${rest} ${howToContinue}`
    return new CommandFailed(exitCodes.inputOutput, message)
  }
  const isUnreadable = error instanceof UnreadableFile
  if (!isUnreadable && !(error instanceof CommandFailed)) return error
  const exitCode = isUnreadable ? exitCodes.data : error.exitCode
  const more = isUnreadable ? rest : `${rest} ${howToContinue}`
  return new CommandFailed(
    exitCode,
    tally.lastLine > 0 ? `${error.message} ${more}` : error.message,
  )
}

/** More lines than this belong in a file. */
const maxShown = 100

/** A small gzip file may hold many lines, and its rejects must not fill the disk. */
const maxWritten = 100_000

/** The beginning of every file of rejects: the first member, or the names of two columns. */
const firstMember = '{"line":'
const addedColumns = ['rejected_line', 'rejected_reason'] as const

/** Refuses a file whose content would be lost: anything but the rejects of an earlier import. */
async function requireRejectsFile(
  path: string,
  input: Input,
  location: StoreLocation,
): Promise<void> {
  const name = `--rejects ${path}`
  const refuse = (fault: string) =>
    new CommandFailed(exitCodes.cannotCreate, `${name} ${fault}. Name another file.`)
  try {
    const isNew = !existsSync(path)
    if (!isNew && !statSync(path).isFile()) return
    if (isSameFile(path, input.file)) throw refuse('is the file to import')
    requireOtherFile(path, location, name)
    if (isNew) return
    const start = await readText(createReadStream(path, { end: addedColumns[0].length - 1 }))
    const isOurs = start.startsWith(firstMember) || start.startsWith(addedColumns[0])
    if (start === '' || isOurs) return
    throw refuse('holds something other than rejected lines and was not changed')
  } catch (error) {
    throw explainWrite(name, error)
  }
}

/**
 * Opens the file for rejected lines, or shows them where none is named. Rows of CSV stay rows,
 * under their header, so that the file can be corrected and imported.
 */
async function openRejects(
  path: string | undefined,
  format: Format,
  header: Reader['header'],
  { tell }: Terminal,
) {
  const [limit, end] =
    path === undefined
      ? [maxShown, 'More lines were rejected. Use --rejects FILE to keep them.']
      : [maxWritten, `${path} ends here: it has ${formatNumber(maxWritten)} lines.`]
  const toLine = format === 'csv' ? buildRowWriter(header) : toRejectLine
  const fail = (error: unknown) => {
    throw explainWrite(`--rejects ${path}`, error)
  }
  // Not synchronous: a named pipe may have no reader, and a signal must still be seen.
  const file = path === undefined ? undefined : await open(path, 'w', 0o600).catch(fail)
  let count = 0

  return {
    /** Resolves once the line is written, so that no failure comes after the report. */
    async add(entry: Entry, reason: string): Promise<void> {
      count++
      if (count === limit + 1) tell(end)
      if (count > limit) return
      if (file === undefined) tell(`line ${entry.line}: ${reason}`)
      else await file.appendFile(`${toLine(entry, reason)}\n`).catch(fail)
    },
    // Not awaited: after a signal, a write may still wait for the reader of a named pipe.
    close: () => void file?.close().catch(() => {}),
  }
}

/** A rejected line as JSON, with escapes for what a terminal would obey. */
function toRejectLine({ line, text }: Entry, reason: string): string {
  return toPrintable(JSON.stringify({ line, reason, text }))
}

/** Writes rows of CSV with their numbers and reasons in two columns before them. */
function buildRowWriter(header: Reader['header']) {
  let isFirst = true

  return ({ line, text, refusal }: Entry, reason: string): string => {
    const { text: head, delimiter } = header() ?? { text: '', delimiter: ',' }
    // The corrected rejects of an earlier import already have these columns.
    const added = addedColumns.join(delimiter) + delimiter
    const isCorrected = head.replaceAll('"', '').startsWith(added)
    const toOwn = (record: string) => (isCorrected ? skipTwo(record, delimiter) : record)
    // Of a row that is too long there is only the beginning, which could be imported.
    const row = refusal?.error === 41300 ? '' : toOwn(text).replace(/\r$/, '')
    const record = `${line}${delimiter}"${reason.replaceAll('"', '""')}"${delimiter}${row}`
    const start = isFirst ? `${added}${toOwn(head)}\n` : ''
    isFirst = false
    return start + record
  }
}

/** A row without its first two fields. A spreadsheet decides which of them have quotes. */
function skipTwo(row: string, delimiter: string): string {
  const end = RegExp.escape(delimiter)
  return row.replace(new RegExp(`^(?:(?:"[^"]*(?:""[^"]*)*"|[^${end}]*)${end}){2}`), '')
}
