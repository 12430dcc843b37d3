/**
 * Follows the journal for many followers. Streams of events and `log --follow` are loops over it:
 *
 *   for await (const page of reader.follow(position, signal)) use(page)
 *
 * What it promises. A follower gets every change after its position once and in order, a page at a
 * time, and asks for the next page once it has consumed the previous one. The loop ends with its
 * signal, or after 'gone' (the position was trimmed away, or is of another journal, as after a
 * restore) or 'off' (another process has switched the journal off). The reader saves nothing: after
 * a kill, a follower returns with the end of the last page that it has used.
 *
 * Behind, live. A follower is behind until it gets the last page, and live from then on. It waits
 * without reading if nothing was announced since that page was read: `wakes` tells. The store
 * announces changes, and `wakeMs` later (5 ms, 10 with 1,000 followers) all who wait read again.
 *
 * Pace. Reads for those behind stand in line, and each has a turn of the event loop. A live
 * follower reads at once. 64 followers get a page in a turn. So a request waits for few of them,
 * however many there are, and however far behind.
 *
 * Sharing. Followers at one position get the same page, with the bytes that the first one has made
 * of it. The last few pages are kept for those that come a little later: a page never changes, and
 * stays valid after its rows are trimmed. But a failover may undo its changes, so a page counts
 * only in the session of the store that it was read in. A follower behind whose position is within
 * a page gets its rest, and so comes to the positions of others. The sender of webhooks, which
 * loops at a pace of its own, shares these pages through `read`.
 *
 * Failures. While the store is away, live followers wait: a read that failed is repeated after
 * 250 ms. A follower behind gets the error. A stream of events does not wait as long: it ends when
 * its token can no longer be verified, after about 1 s, and its client reconnects.
 */
import { setImmediate as nextTurn } from 'node:timers/promises'
import { type Position, toCursor, toPosition } from './position.ts'
import type { JournalEvent, JournalPage } from './row.ts'

/** A page that all followers at one position get. */
export interface SharedPage extends JournalPage {
  /** Its changes as they are sent, made by the first follower that sends them. */
  bytes?: Buffer
}

/** A page of changes; or why there is none, and never will be. */
export type Read = SharedPage | 'gone' | 'off'

export interface JournalReader {
  /** Every page after a position, as soon as it is there, until the signal aborts. */
  follow(after: Position | 'oldest', signal: AbortSignal): AsyncGenerator<Read, void, void>
  /** The page after a position as it is now, perhaps an empty one. */
  read(after: Position | 'oldest'): Promise<Read>
}

/** The part of a store that the reader needs. */
export interface JournalSource {
  readJournal(after: Position | 'oldest', limit: number): Promise<JournalPage | 'gone' | 'off'>
  watchJournal(onChange: () => void): () => void
  journalSession?(): unknown
}

/** What a read has found, and how often those who wait had been woken when it began. */
interface Found {
  readonly read: Read
  readonly wakes: number
}

/** A page that is being read, or is kept. */
interface Reading {
  readonly after: Position | 'oldest'
  readonly wakes: number
  readonly found: Promise<Found>
  /** Once it is kept. */
  page?: SharedPage
}

const pageEvents = 256
const maxKept = 8
/** How many followers get a page in one turn of the event loop. */
const followersPerTurn = 64
/** Changes this close together are read together: 5 ms, and up to 5 more for 1,000 followers. */
const [wakeMs, wakeMsOfFollower] = [5, 0.005]
/** When live followers read again after a read has failed. */
const retryMs = 250

export function buildReader(store: JournalSource): JournalReader {
  /** The last pages, and those that are being read. */
  let readings: Reading[] = []
  let session: unknown
  /** The reads that stand in line, by position, and the end of the line. */
  const inLine = new Map<Position | 'oldest', Promise<Found>>()
  let lineEnd: Promise<unknown> = Promise.resolve()
  let turn = Promise.resolve()
  let placesInTurn = followersPerTurn
  let followers = 0
  const waiting = new Set<() => void>()
  let wakes = 0
  let wakeTimer: NodeJS.Timeout | undefined
  let stopWatching = () => {}

  async function* follow(after: Position | 'oldest', signal: AbortSignal) {
    let isLive = false
    /** What `wakes` was when nothing more was there. */
    let wakesAtEnd: number | undefined
    let resume = () => {}
    const leave = () => resume()
    signal.addEventListener('abort', leave)
    if (followers++ === 0) watch()
    try {
      while (!signal.aborted) {
        if (wakesAtEnd === wakes) {
          await new Promise<void>((resolve) => {
            resume = resolve
            waiting.add(resolve)
          })
          continue
        }
        let found: Found
        try {
          found = await (isLive ? share(after) : shareInLine(after))
        } catch (error) {
          if (signal.aborted) return
          if (!isLive) throw error
          wakesAtEnd = wakes
          wakeIn(retryMs)
          continue
        }
        const { read } = found
        if (typeof read === 'string') return void (yield read)
        isLive = read.isLast
        wakesAtEnd = isLive ? found.wakes : undefined
        if (read.events.length === 0) continue
        await takeTurn()
        if (signal.aborted) return
        yield read
        after = read.end
      }
    } finally {
      signal.removeEventListener('abort', leave)
      waiting.delete(resume)
      if (--followers === 0) rest()
    }
  }

  function watch(): void {
    // While nobody followed, nothing was announced.
    wakes++
    stopWatching = store.watchJournal(() => wakeIn(wakeMs + followers * wakeMsOfFollower))
  }

  function rest(): void {
    stopWatching()
    clearTimeout(wakeTimer)
    wakeTimer = undefined
    readings = []
  }

  function wakeIn(delayMs: number): void {
    wakeTimer ??= setTimeout(wake, delayMs).unref()
  }

  function wake(): void {
    wakeTimer = undefined
    wakes++
    for (const resume of waiting) resume()
    waiting.clear()
  }

  /** Resolves in this turn of the event loop for some followers, in a later one for others. */
  function takeTurn(): Promise<void> {
    if (placesInTurn-- === 0) {
      turn = turn.then(() => nextTurn())
      placesInTurn = followersPerTurn - 1
    }
    return turn
  }

  /** The page after a position: one that is kept or being read, or else it is read now. */
  function share(after: Position | 'oldest'): Promise<Found> {
    const known = sharedReadings().findLast((one) => one.after === after)
    if (known !== undefined) return known.found
    const wakesBefore = wakes
    const found = store
      .readJournal(after, pageEvents)
      .then((read) => ({ read, wakes: wakesBefore }))
    const reading: Reading = { after, wakes, found }
    readings.push(reading)
    found.then(
      ({ read }) => keep(reading, read),
      () => drop(reading),
    )
    return found
  }

  function sharedReadings(): readonly Reading[] {
    const current = store.journalSession?.()
    if (current !== session) readings = []
    session = current
    return readings
  }

  function keep(reading: Reading, read: Read): void {
    // After a trim, another page is the oldest.
    if (typeof read === 'string' || read.events.length === 0 || reading.after === 'oldest') {
      drop(reading)
    } else {
      reading.page = read
      readings = readings.slice(-maxKept)
    }
  }

  function drop(reading: Reading): void {
    readings = readings.filter((one) => one !== reading)
  }

  /** The same for a follower behind, which stands in line with the others that are. */
  function shareInLine(after: Position | 'oldest'): Promise<Found> {
    const known = inLine.get(after)
    if (known !== undefined) return known
    const found = lineEnd.then(nextTurn).then(() => {
      inLine.delete(after)
      return findRest(after) ?? share(after)
    })
    inLine.set(after, found)
    lineEnd = found.catch(() => {})
    return found
  }

  /** The rest of a kept page, if the position is within one. From its end on, followers share. */
  function findRest(after: Position | 'oldest'): Found | undefined {
    for (const { page, wakes: wakesBefore } of sharedReadings()) {
      if (page === undefined) continue
      const { end, isLast } = page
      const events = page.events.slice(page.events.findIndex((one) => one.position === after) + 1)
      const isWithin = events.length > 0 && events.length < page.events.length
      if (isWithin) return { read: { begin: after, events, end, isLast }, wakes: wakesBefore }
    }
    return undefined
  }

  return { follow, read: async (after) => (await share(after)).read }
}

/** The change at a position; undefined if there is none or it has been trimmed. */
export async function findEvent(
  store: Pick<JournalSource, 'readJournal'>,
  position: Position,
): Promise<JournalEvent | undefined> {
  const cursor = toCursor(position)
  if (cursor === undefined || cursor.index === 0) return undefined
  const page = await store.readJournal(toPosition({ ...cursor, index: cursor.index - 1 }), 1)
  if (typeof page === 'string') return undefined
  const [event] = page.events
  return event?.position === position ? event : undefined
}
