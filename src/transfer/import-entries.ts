import type { ConflictRule } from '../contract/parameters.ts'
import type { NewPlant } from '../contract/shapes.ts'
import { openScratchStore } from '../store/open.ts'
import type { ImportOutcome, Store, VersionedPlant } from '../store/store.ts'
import type { Entry, Reader, Refusal } from './lines.ts'
import { countFailed, countStored, newTally, type Outcome, type Tally, toOutcome } from './tally.ts'

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
  /** Called when the outcomes of a batch are known. */
  onBatch?(tally: Tally): void
}

/** What became of an import. It is accurate, however the import ended. */
export interface Imported extends Tally {
  /** Why it ended before its source did: the reason of its signal, or an error. */
  readonly error?: unknown
}

/** How many batches are stored at a time: with one, PostgreSQL takes 1.4 times as long. */
const maxInFlight = 2

/** A batch that is being stored. */
interface Batch {
  readonly ids: ReadonlySet<bigint>
  /** Resolves with the number of conflicts in it, after the outcomes of earlier batches. */
  readonly conflicts: Promise<number>
}

/**
 * Imports entries: lines of a file, or the plants of another store. Batches that share an id are
 * stored one after the other, because their order decides which plant stays.
 */
export async function importEntries(
  entries: AsyncIterable<Entry[]>,
  job: ImportJob,
): Promise<Imported> {
  const { rule, signal, batchEntries, refusedLimit = Infinity } = job
  const tally = newTally()
  let batch: Entry[] = []
  const inFlight: Batch[] = []
  /** Those in the batches awaited so far, so that the same file always ends at the same line. */
  let conflicts = 0

  async function readAll(): Promise<void> {
    let invalid = 0
    for await (const group of entries) {
      for (const entry of group) {
        batch.push(entry)
        if (entry.refusal !== undefined) invalid++
        const isLast = invalid + conflicts >= refusedLimit
        if (isLast) tally.report.endedAtLine = entry.line
        if (isLast || batch.length === batchEntries) await beginBatch()
        if (isLast) return
      }
    }
  }

  async function beginBatch(): Promise<void> {
    const entries = batch
    batch = []
    const ids = new Set(entries.flatMap(({ plant }) => plant?.id ?? []))
    const mustWait = (one: Batch) => !one.ids.isDisjointFrom(ids)
    while (inFlight.length === maxInFlight || inFlight.some(mustWait)) await settleOldest()
    signal.throwIfAborted()
    const stored = storeBatch(entries, inFlight.at(-1))
    // It is awaited when its turn comes; until then, a rejection is not unhandled.
    stored.catch(() => {})
    inFlight.push({ ids, conflicts: stored })
  }

  async function settleOldest(): Promise<void> {
    conflicts += (await inFlight.shift()?.conflicts) ?? 0
  }

  async function storeBatch(entries: readonly Entry[], before: Batch | undefined): Promise<number> {
    const outcomes = await putBatch(entries, before)
    countStored(tally, entries, outcomes)
    for (const [index, { refusal }] of outcomes.entries()) {
      if (refusal !== undefined) await job.onRefused?.(entries[index] as Entry, refusal)
    }
    job.onBatch?.(tally)
    return outcomes.filter(({ kind }) => kind === 'conflicts').length
  }

  /** The outcome of each entry: what became of its plant, or its refusal. */
  async function putBatch(entries: readonly Entry[], before: Batch | undefined) {
    const plants = entries.flatMap(({ plant }) => plant ?? [])
    // Outcomes are counted in the order of the source.
    const [put] = await Promise.allSettled([
      plants.length === 0 ? [] : job.put(plants),
      before?.conflicts,
    ])
    if (put.status === 'rejected') {
      countFailed(tally, entries, put.reason)
      throw put.reason
    }
    const ofPlants = put.value.values()
    return entries.map(({ refusal }): Outcome => {
      if (refusal !== undefined) return { kind: 'invalid', refusal }
      return toOutcome(ofPlants.next().value as ImportOutcome, rule)
    })
  }

  function toImported(): Tally {
    const { text: header, ignored = [] } = job.header?.() ?? {}
    if (header !== undefined) tally.report.header = header
    if (ignored.length > 0) tally.report.ignoredColumns = [...ignored]
    return tally
  }

  try {
    try {
      await readAll()
    } finally {
      // If the source fails, what it gave before is stored.
      await beginBatch()
    }
    while (inFlight.length > 0) await settleOldest()
    signal.throwIfAborted()
    return toImported()
  } catch (error) {
    await Promise.allSettled(inFlight.map((one) => one.conflicts))
    return { ...toImported(), error }
  }
}

/** Stores plants on behalf of a token, or of the operator. */
export function putInto(store: Store, rule: ConflictRule, tokenId?: string): Put {
  // One rule replaces the stored plant. The others keep it, and differ in what they report.
  const onConflict = rule === 'replace' ? 'replace' : 'keep'
  return (plants) => store.importPlants(plants, onConflict, tokenId)
}

/** How many plants are looked up at a time. */
const lookUps = 128

/** What a store has of some plants, in parts: it serves others meanwhile. */
export async function* findPlants(
  store: Pick<Store, 'getPlant'>,
  plants: readonly NewPlant[],
): AsyncGenerator<(VersionedPlant | undefined)[]> {
  for (let first = 0; first < plants.length; first += lookUps) {
    const asked = plants.slice(first, first + lookUps)
    yield await Promise.all(asked.map(({ id }) => store.getPlant(id)))
  }
}

/**
 * Finds out what an import would do. A temporary store gets what the store has of the plants in
 * question, and then the import, so that lines with the same id meet as they would in the store,
 * which is only read. Without a store, there are no plants yet.
 */
export async function openDryRun(store: Pick<Store, 'getPlant'> | undefined, rule: ConflictRule) {
  const scratch = await openScratchStore()
  const put = putInto(scratch, rule)
  return {
    async put(plants: readonly NewPlant[]): ReturnType<Put> {
      for await (const part of store ? findPlants(store, plants) : []) {
        const found = part.filter((plant) => plant !== undefined)
        // What an earlier line has replaced stays replaced.
        if (found.length > 0) await scratch.importPlants(found, 'keep')
      }
      return put(plants)
    },
    close: () => scratch.close(),
  }
}
