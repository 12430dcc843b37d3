import { Failure } from '../contract/errors.ts'
import { delimiterNames, delimiters, type Format } from '../contract/formats.ts'
import { limits } from '../contract/limits.ts'
import type { ConflictRule } from '../contract/parameters.ts'
import { type ImportReport, maxRefused, type NewPlant } from '../contract/shapes.ts'
import type { ImportOutcome } from '../store/store.ts'
import { putBatches, toBatches } from '../transfer/batches.ts'
import { type Entry, UnreadableFile } from '../transfer/entry.ts'
import { type Outcome, toOutcome } from '../transfer/outcome.ts'
import { buildReader, readPlants } from '../transfer/read.ts'
import {
  countFailed,
  countLines,
  countRefused,
  countSettled,
  describeCounts,
  describeRest,
  newTally,
  type Tally,
} from '../transfer/tally.ts'
import type { FileUpload } from './file-upload.ts'

/** The parameters of an import, and the token that asked for it. */
export interface ImportRequest {
  readonly format: Format
  readonly delimiter?: string | undefined
  readonly rule: ConflictRule
  readonly tokenId: string
}

interface FileImport extends ImportRequest {
  readonly upload: FileUpload
  readonly put: (plants: readonly NewPlant[]) => Promise<readonly ImportOutcome[]>
}

/** Other requests wait while SQLite stores a batch: some milliseconds. */
const batchEntries = 128

/** Stores the plants of a file batch by batch, and reports what became of each line. */
export async function importFile(file: FileImport): Promise<ImportReport> {
  const { upload, format, delimiter, rule, put } = file
  const { chunks, signal } = upload
  const tally = newTally()
  const refused: ImportReport['refused'] = []
  const entries = readPlants(chunks, buildReader(format, delimiter))
  const batches = toBatches(untilTooManyRefused(entries), batchEntries)
  let endedAtLine: number | undefined

  /** The entries up to the one with which too many are refused. */
  async function* untilTooManyRefused(groups: AsyncIterable<Entry[]>): AsyncGenerator<Entry[]> {
    let invalid = 0
    for await (const group of groups) {
      const last = group.findIndex(({ refusal }) => {
        if (refusal !== undefined) invalid++
        return invalid + tally.counts.conflicts >= limits.refusedLines
      })
      yield last === -1 ? group : group.slice(0, last + 1)
      if (last === -1) continue
      endedAtLine = group[last]?.line
      return
    }
  }

  async function putAndJudge(plants: readonly NewPlant[]): Promise<Outcome[]> {
    return (await put(plants)).map((outcome) => toOutcome(outcome, rule))
  }

  try {
    await putBatches(batches, putAndJudge, signal, {
      onSettled(entries, outcomes) {
        countSettled(tally, entries, outcomes)
        for (let index = 0; refused.length < maxRefused && index < entries.length; index++) {
          const { refusal } = outcomes[index] as Outcome
          if (refusal !== undefined) refused.push(toRefused(entries[index] as Entry, refusal))
        }
      },
      onFailed: (entries, error) => countFailed(tally, entries, error),
    })
    signal.throwIfAborted()
  } catch (error) {
    throw withCounts(error, tally)
  }
  const report: ImportReport = {
    lines: countLines(tally),
    ...tally.counts,
    refused,
    refusedInAll: countRefused(tally),
  }
  return endedAtLine === undefined ? report : { ...report, endedAtLine }
}

function toRefused(
  entry: Entry,
  { error, message }: NonNullable<Outcome['refusal']>,
): ImportReport['refused'][number] {
  const id = entry.plant === undefined ? entry.id : entry.plant.id
  return id === undefined
    ? { line: entry.line, error, message }
    : { line: entry.line, id, error, message }
}

/** Adds to a failure what was imported before it. */
function withCounts(error: unknown, tally: Tally): unknown {
  const isKnown = error instanceof Failure || error instanceof UnreadableFile
  if (!isKnown) return error
  const done = countLines(tally) === 0 ? '' : ` Imported before that: ${describeCounts(tally)}.`
  const number = error instanceof Failure ? error.number : error.error
  const hint = 'delimiter' in error ? toHint(error.delimiter) : ''
  const reason = error instanceof Failure ? error.fault : error.message
  const message = `${reason.replace(/^line/, 'Line')}${hint}`
  return new Failure(number, `${message}${done} ${describeRest(tally)}`, {
    cause: error,
    ...(error instanceof Failure && { headers: error.headers }),
  })
}

/** How to send a file whose delimiter is not the requested one, or is not supported. */
function toHint(delimiter: string | undefined): string {
  if (delimiter === undefined) return ''
  const name = delimiterNames.find((one) => delimiters[one] === delimiter)
  return name === undefined
    ? ' Send it with commas, semicolons or tabs.'
    : ` Send delimiter=${name}, or no delimiter.`
}
