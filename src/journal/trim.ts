import { rowOverhead } from './bound.ts'
import type { Position } from './position.ts'
import type { JournalSource } from './reader.ts'

/** How much one step of a trim reads and deletes: little enough not to delay requests. */
export const rowsPerTrim = 501
const bytesPerTrim = 1024 * 1024
/** More than one transaction can add, so that dropping keeps up with any writer. */
const bytesPerDrop = 16 * 1024 * 1024

/** The part of a row that a trim needs. */
export type TrimRow = readonly [seq: number, at: number, bytes: number, count: number]

/**
 * Chooses which of the oldest rows one step of a trim deletes: those from before a time, up to the
 * first newer one, so that no gap appears. The last of them stays: a follower that has read it
 * continues from there, however long nothing has changed.
 */
export function planTrim(
  oldest: readonly TrimRow[],
  before: number,
): { upTo: number | undefined; isDone: boolean } {
  let upTo: number | undefined
  let bytes = 0
  for (const [index, [seq, at, size]] of oldest.entries()) {
    const next = oldest[index + 1]
    if (next === undefined) break
    if (Math.max(at, next[1]) >= before) return { upTo, isDone: true }
    bytes += size
    if (upTo !== undefined && bytes > bytesPerTrim) return { upTo, isDone: false }
    upTo = seq
  }
  return { upTo, isDone: oldest.length < rowsPerTrim }
}

/**
 * Chooses the oldest rows that hold at least this many bytes, or as many as a step may drop.
 * Chooses none if another process has trimmed since the first row was measured. The last row stays.
 */
export function planDrop(
  oldest: readonly TrimRow[],
  first: number,
  bytes: number,
): { upTo: number | undefined; changes: number } {
  let upTo: number | undefined
  let changes = 0
  let left = oldest[0]?.[0] === first ? Math.min(bytes, bytesPerDrop) : 0
  for (const [seq, , size, count] of oldest.slice(0, -1)) {
    if (left <= 0) break
    left -= size + rowOverhead
    changes += count
    upTo = seq
  }
  return { upTo, changes }
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
