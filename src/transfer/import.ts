import type { ConflictRule } from '../contract/parameters.ts'
import { type ImportReport, maxRefused, maxRefusedText, type NewPlant } from '../contract/shapes.ts'
import type { ImportOutcome, Store } from '../store/store.ts'
import { putBatches, toBatches } from './batches.ts'
import type { Entry, Reader } from './entry.ts'
import type { Refusal } from './lines.ts'
import { type Outcome, toOnConflict, toOutcome } from './outcome.ts'
import {
  countFailed,
  countLines,
  countRefused,
  countSettled,
  newTally,
  type Tally,
} from './tally.ts'

/** Puts plants into a store, or tries what that would do. Returns the outcome of each, in order. */
export type Put = (plants: readonly NewPlant[]) => Promise<readonly ImportOutcome[]>

/** How the plants of a source are imported. */
export interface ImportJob {
  readonly put: Put
  readonly rule: ConflictRule
  readonly signal: AbortSignal
  /** The number of plants that are put at a time. */
  readonly batchEntries: number
  /** The import ends early once it has refused this many entries. */
  readonly refusedLimit?: number
  /** The header row of the source, once it was read. */
  readonly header?: Reader['header']
  onRefused?(entry: Entry, refusal: Refusal): Promise<void>
  onSettled?(tally: Tally): void
}

/** What became of an import. It is accurate, however the import ended. */
export interface Imported {
  readonly tally: Tally
  readonly report: ImportReport
  /** Why it ended before its source did: the reason of its signal, or an error. */
  readonly error?: unknown
}

/** Imports entries, batch by batch: lines of a file, or the plants of another store. */
export async function importEntries(
  entries: AsyncIterable<Entry[]>,
  job: ImportJob,
): Promise<Imported> {
  const { put, rule, signal, batchEntries, refusedLimit = Infinity } = job
  const tally = newTally()
  const refused: ImportReport['refused'] = []
  let endedAtLine: number | undefined

  /** The entries up to the one with which too many are refused. */
  async function* untilTooManyRefused(): AsyncGenerator<Entry[]> {
    let invalid = 0
    for await (const group of entries) {
      const last = group.findIndex(({ refusal }) => {
        if (refusal !== undefined) invalid++
        return invalid + tally.counts.conflicts >= refusedLimit
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

  async function onSettled(settled: readonly Entry[], outcomes: readonly Outcome[]) {
    countSettled(tally, settled, outcomes)
    for (const [index, { refusal }] of outcomes.entries()) {
      if (refusal === undefined) continue
      const entry = settled[index] as Entry
      if (refused.length < maxRefused) refused.push(toRefused(entry, refusal))
      await job.onRefused?.(entry, refusal)
    }
    job.onSettled?.(tally)
  }

  function toImported(): Omit<Imported, 'error'> {
    const { text: header, ignored = [] } = job.header?.() ?? {}
    const report: ImportReport = {
      lines: countLines(tally),
      ...tally.counts,
      refused,
      refusedInAll: countRefused(tally),
      ...(endedAtLine !== undefined && { endedAtLine }),
      ...(header !== undefined && { header }),
      ...(ignored.length > 0 && { ignoredColumns: [...ignored] }),
    }
    return { tally, report }
  }

  try {
    await putBatches(toBatches(untilTooManyRefused(), batchEntries), putAndJudge, signal, {
      onSettled,
      onFailed: (failed, error) => countFailed(tally, failed, error),
    })
    signal.throwIfAborted()
    return toImported()
  } catch (error) {
    return { ...toImported(), error }
  }
}

/** Stores plants on behalf of a token, or of the operator. */
export function putInto(store: Store, rule: ConflictRule, tokenId?: string): Put {
  return (plants) => store.importPlants(plants, toOnConflict(rule), tokenId)
}

function toRefused(entry: Entry, { error, message }: Refusal): ImportReport['refused'][number] {
  const id = entry.plant === undefined ? entry.id : entry.plant.id
  const text = toBeginning(entry.text)
  return { line: entry.line, ...(id !== undefined && { id }), error, message, text }
}

/** The beginning of a record, without the end of its line and without half a character. */
function toBeginning(text: string): string {
  return text
    .replace(/\r$/, '')
    .slice(0, maxRefusedText)
    .replace(/[\ud800-\udbff]$/, '')
}
