import { Readable } from 'node:stream'
import { Failure } from '../contract/errors.ts'
import { delimiters } from '../contract/formats.ts'
import { withSnapshot, writePlants } from '../transfer/export.ts'
import type { Call, Printed } from './commands.ts'
import { standardStream, toFormat, writeTo } from './files.ts'
import { requireOtherFile } from './stores.ts'
import { CommandFailed, exitCodes, startProgress, toCount, toPrintableLines } from './terminal.ts'

/** Writes the plants of one moment to a file or to standard output. */
export async function exportPlants(call: Call<'export'>): Promise<Printed> {
  const { store, flags, config, terminal } = call
  const [file = standardStream] = call.args
  const { tag, spreadsheet } = flags
  const isStandard = file === standardStream
  // Without a name that shows the format, it is NDJSON.
  const format = toFormat(isStandard ? 'standard.ndjson' : file, flags)
  const isTabbed = /\.tsv(\.gz)?$/i.test(file)
  const delimiter = flags.delimiter ?? (isTabbed ? delimiters.tab : undefined)
  const query = { format, delimiter, spreadsheet, tag, after: undefined, limit: undefined }
  if (!isStandard) requireOtherFile(file, config.storeLocation)
  const startedAt = performance.now()
  const report = startProgress('export', 'plants', call)
  let count = 0

  const exporting = withSnapshot(store, async (snapshot) => {
    const total = flags.quiet ? 0 : await snapshot.countPlants(tag)
    const plants = writePlants(snapshot, query, (more) => {
      count += more
      report(count, { done: count, total })
    })
    const isShown = isStandard && terminal.output.isTTY
    const pieces = Readable.from(isShown ? toShown(plants) : plants, { objectMode: false })
    await writeTo(file, pieces, 'replace', terminal)
  })
  await exporting.catch((error) => {
    if (!(error instanceof Failure)) throw error
    throw new CommandFailed(exitCodes.inputOutput, `The export is incomplete: ${error.message}`)
  })
  const seconds = (performance.now() - startedAt) / 1000
  return { note: `Exported: ${toCount(count, 'plants')} (${seconds.toFixed(1)} s).` }
}

/** A terminal must not obey a name. A file or a pipe gets every character as it is. */
async function* toShown(pieces: AsyncIterable<string>): AsyncGenerator<string> {
  for await (const piece of pieces) yield toPrintableLines(piece)
}
