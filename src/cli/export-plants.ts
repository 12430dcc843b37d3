import { createWriteStream } from 'node:fs'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { createGzip } from 'node:zlib'
import { WrongConfig } from '../config.ts'
import { Failure } from '../contract/errors.ts'
import { delimiters } from '../contract/formats.ts'
import { isStorable } from '../contract/values.ts'
import type { Snapshot } from '../store/store.ts'
import { type ExportForm, withSnapshot, writePlants } from '../transfer/export.ts'
import type { Call, Printed } from './command.ts'
import { CommandFailed, exitCodes } from './exit.ts'
import { describeStop, makeFile, standardStream, toForm, writeOut } from './files.ts'
import type { exportFlags } from './flag-tables.ts'
import type { ValuesOf } from './flags.ts'
import { tuneHeap } from './memory.ts'
import { startProgress, toCount } from './progress.ts'
import { stopOnSignal, throwIfStopped } from './signals.ts'
import { requireOtherFile } from './stores.ts'
import { toPrintableLines } from './terminal.ts'

/** Writes the plants of one moment to a file or to standard output. */
export async function exportPlants(call: Call<typeof exportFlags>): Promise<Printed> {
  tuneHeap()
  const { store, flags, config, terminal } = call
  const [file = standardStream] = call.args
  const isStandard = file === standardStream
  const form = toExportForm(isStandard ? 'standard.ndjson' : file, flags)
  if (flags.tag !== undefined && !isStorable(flags.tag)) {
    throw new WrongConfig(['--tag must be text without NUL characters.'])
  }
  if (!isStandard) requireOtherFile(file, config.storeLocation)
  const signal = stopOnSignal()
  const startedAt = performance.now()
  const progress = startProgress('export', 'plants', terminal, flags)
  let count = 0
  let total = 0

  function onWritten(more: number): void {
    count += more
    progress.report(count, { done: count, total })
  }

  async function write(snapshot: Snapshot): Promise<void> {
    if (!flags.quiet) total = await snapshot.countPlants(flags.tag)
    const query = { ...form, tag: flags.tag, after: undefined, limit: undefined }
    const plants = writePlants(snapshot, query, onWritten)
    const isShown = isStandard && terminal.output.isTTY
    const pieces = Readable.from(isShown ? toShown(plants) : plants, { objectMode: false })
    if (isStandard) return writeOut(pieces, terminal.output, signal)
    await makeFile(file, 'replace', signal, (draft) => {
      const gzip = file.endsWith('.gz') ? [createGzip()] : []
      return pipeline([pieces, ...gzip, createWriteStream(draft)], { signal })
    })
  }

  try {
    await withSnapshot(store, write)
  } catch (error) {
    throwIfStopped(signal, describeStop(file))
    if (!(error instanceof Failure)) throw error
    throw new CommandFailed(exitCodes.inputOutput, `The export is incomplete: ${error.message}`)
  } finally {
    progress.stop()
  }
  const seconds = (performance.now() - startedAt) / 1000
  return { note: `Exported: ${toCount(count, 'plants')} (${seconds.toFixed(1)} s).` }
}

/** The form given by the flags, or else by the extension of the file. */
function toExportForm(path: string, flags: ValuesOf<typeof exportFlags>): ExportForm {
  const { format, delimiter } = toForm(path, flags)
  const { spreadsheet } = flags
  if (spreadsheet && format !== 'csv') throw new WrongConfig(['--spreadsheet is for CSV only.'])
  if (delimiter !== undefined && !Object.values<string>(delimiters).includes(delimiter)) {
    throw new WrongConfig(['--delimiter must be comma, semicolon or tab.'])
  }
  const isTabbed = /\.tsv(\.gz)?$/i.test(path)
  return { format, spreadsheet, delimiter: delimiter ?? (isTabbed ? delimiters.tab : undefined) }
}

/** A terminal must not obey a name. A file or a pipe gets every character as it is. */
async function* toShown(pieces: AsyncIterable<string>): AsyncGenerator<string> {
  for await (const piece of pieces) yield toPrintableLines(piece)
}
