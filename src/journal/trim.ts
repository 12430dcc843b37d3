import { setImmediate as nextTurn } from 'node:timers/promises'
import type { Position } from './position.ts'
import type { JournalSource } from './reader.ts'

/** How many rows a step reads: few enough not to delay requests. A trim keeps the last of them. */
export const rowsPerTrim = 501
/** How much a step of a trim deletes. It is in no hurry. */
const bytesPerTrim = 1024 * 1024
/** How much a step deletes of a journal that is too large: about as much as a full batch adds. */
const bytesPerDrop = 4 * 1024 * 1024
/** The approximate overhead of a row: 25 bytes in SQLite, 75 in PostgreSQL. */
const rowOverhead = 64

/** The part of a row that a trim needs. */
export type TrimRow = readonly [seq: number, at: number, bytes: number]

/** Consecutive rows of the journal, few enough to be deleted in one step. */
export interface Stretch {
  /** The `seq` of its first and its last row. */
  readonly first: number
  readonly last: number
  readonly bytes: number
  /** Whether the journal ended with it when it was measured. */
  readonly isLast: boolean
}

/** Measures the first stretch of some rows, of one row at least; undefined if there are none. */
export function toStretch(rows: readonly TrimRow[], maxBytes = bytesPerDrop): Stretch | undefined {
  let stretch: Stretch | undefined
  for (const [index, [seq, , size]] of rows.entries()) {
    const { first, bytes } = stretch ?? { first: seq, bytes: 0 }
    const isLast = index === rows.length - 1 && rows.length < rowsPerTrim
    const longer = { first, last: seq, bytes: bytes + size + rowOverhead, isLast }
    if (stretch !== undefined && longer.bytes > maxBytes) break
    stretch = longer
  }
  return stretch
}

/**
 * Chooses which of the oldest rows one step of a trim deletes: those from before a time, up to the
 * first newer one, so that no gap appears. The last of them stays: a follower that has read it
 * continues from there, however long nothing has changed.
 */
export function planTrim(
  oldest: readonly TrimRow[],
  before: number,
): { upTo: number | undefined; isDone: boolean } {
  const newer = oldest.findIndex(([, at]) => at >= before)
  const old = newer === -1 ? oldest : oldest.slice(0, newer)
  const surplus = old.slice(0, -1)
  const upTo = toStretch(surplus, bytesPerTrim)?.last
  const isDone = upTo === surplus.at(-1)?.[0] && old.length < rowsPerTrim
  return { upTo, isDone }
}

/** How much longer the journal keeps changes that an active receiver has not read. */
const extraMs = 3 * 24 * 60 * 60 * 1000

/** The part of a store that is trimmed, and says what webhook receivers have not read yet. */
interface TrimmedStore extends Pick<JournalSource, 'readJournal'> {
  readonly receivers: { list(): Promise<readonly Receiver[]> }
  trimJournal(before: number): Promise<boolean>
}

interface Receiver {
  readonly state: string
  readonly progress: { readonly position: Position }
}

/**
 * Trims changes that are older than `keepMs` and that no receiver needs, or all of them if the
 * journal is off.
 */
export async function trimOld(store: TrimmedStore, keepMs: number | 'off'): Promise<void> {
  const before =
    keepMs === 'off' ? Number.MAX_SAFE_INTEGER : await findTrimTime(store, keepMs, Date.now())
  while (!(await store.trimJournal(before)));
}

/** The time before which no active receiver needs the journal. */
export async function findTrimTime(
  store: TrimmedStore,
  keepMs: number,
  now: number,
): Promise<number> {
  const usual = now - keepMs
  const active = (await store.receivers.list()).filter(({ state }) => state === 'active')
  const needed = await Promise.all(active.map((receiver) => findNeededAt(store, receiver)))
  return Math.max(Math.min(usual, ...needed), usual - extraMs)
}

/** The time of the oldest change that a receiver needs. */
async function findNeededAt(store: TrimmedStore, { progress }: Receiver): Promise<number> {
  const page = await store.readJournal(progress.position, 1)
  const next = typeof page === 'string' ? undefined : page.events[0]
  return next?.at ?? Infinity
}

/** The part of a store that the bound needs. */
interface Measured {
  measureJournal(after: number): Promise<Stretch | undefined>
  dropChanges(upTo: number): Promise<number>
}

export type JournalBound = ReturnType<typeof boundJournal>
export type JournalMeasures = JournalBound['measures']

/**
 * Keeps the journal within `JOURNAL_MAX` bytes by dropping the oldest changes before their time.
 * The size is a sum over stretches of rows: on SQLite, one sum over 1 GiB of small changes would
 * hold up every request for about a second. Stretches are measured once and remembered, except the
 * newest, to which any process may append. The oldest counts as a whole until all of it is trimmed,
 * by any process. On PostgreSQL, a row that commits late into an older stretch is not counted.
 */
export function boundJournal(store: Measured, maxBytes: number) {
  /** The size, and how many changes this process has dropped before their time. */
  const measures = { bytes: 0, droppedChanges: 0 }
  /** In order, without a gap. */
  let stretches: Stretch[] = []

  async function measure(): Promise<void> {
    // Any process may have added to it.
    stretches.pop()
    let newest: Stretch | undefined
    do {
      newest = await store.measureJournal(stretches.at(-1)?.last ?? 0)
      // The last row is never deleted, so if none is left, a failover has undone the last ones.
      if (newest === undefined) stretches = []
      else stretches.push(newest)
      await nextTurn()
    } while (newest?.isLast === false)
    // Where the journal begins now: any process may have trimmed it.
    const { first = 0 } = (await store.measureJournal(0)) ?? {}
    stretches = stretches.filter(({ last }) => last >= first)
    measures.bytes = stretches.reduce((sum, { bytes }) => sum + bytes, 0)
  }

  return {
    measures: measures as Readonly<typeof measures>,
    /** Measures the journal and drops the excess, a stretch at a time. */
    async keep(): Promise<void> {
      await measure()
      // The newest one has the last row, which stays.
      while (measures.bytes > maxBytes && stretches.length > 1) {
        const { last, bytes } = stretches[0] as Stretch
        measures.droppedChanges += await store.dropChanges(last)
        measures.bytes -= bytes
        stretches.shift()
      }
    },
  }
}
