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
 * States. A follower that uses a page is in no queue. One that asks for a page is in one of three:
 *
 *   behind   its position is not known to be the end; a turn of the event loop serves one
 *   idle     its position is `end`, so it is live; it waits without reading
 *   woken    it was idle when a change was announced; served before all that are behind
 *
 * Backfill. Each turn of the event loop reads one page, for the follower that has waited longest,
 * and gives it to 64 in the same queue at the same position. So however many are behind, and
 * however far, a request waits for one page.
 *
 * Cutover. A page that reaches the end of the journal sets `end`, unless changes were announced
 * while it was read: they may be missing from it. `wakes` counts the announcements to notice that.
 *
 * Streaming. The store announces a change. `wakeMs` later (5 ms, 10 with 1,000 followers), `end` is
 * forgotten and all idle followers are woken: one read serves them all, in as many turns as they
 * need. Changes that are announced meanwhile wait until no follower is woken, and are read
 * together. The sender of webhooks watches the store itself and has a delay of its own, also 5 ms.
 *
 * Sharing. Followers at one position get the same page, with the bytes that the first one has made
 * of it. The last few pages are kept for those that come a little later: a page never changes, and
 * stays valid after its rows are trimmed. But a failover may undo its changes: with another session
 * of the store, all are dropped. A follower behind whose position is within one of them gets its
 * rest, and so comes to the positions of others. The sender of webhooks, which has a pace of its
 * own, shares these pages through `read`.
 *
 * Failures. While the store is away, live followers wait: a read that failed is repeated every
 * 250 ms. A follower behind gets the error. A stream of events does not wait as long: it ends when
 * its token can no longer be verified, after about 1 s, and its client reconnects.
 *
 * Bounds. A page has 256 changes or 1 MiB. The last 8 are kept. One read at a time. The store is
 * watched while there are followers.
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

interface Follower {
  position: Position | 'oldest'
  /** Undefined while it uses a page. */
  queue: Set<Follower> | undefined
  /** Gives it a page, or nothing when it has left. */
  give(read: Read | undefined): void
  fail(error: unknown): void
}

interface KeptPage {
  readonly after: Position | 'oldest'
  readonly reading: Promise<Read>
  /** Once it is read, unless there is none. */
  page?: SharedPage
}

const pageEvents = 256
const maxPages = 8
/** How many followers get a page in one turn of the event loop. */
const followersPerTurn = 64
/** Changes this close together are read together: 5 ms, and up to 5 more for 1,000 followers. */
const [wakeMs, wakeMsOfFollower] = [5, 0.005]

/** When the followers that wait for a change are woken again after a read has failed. */
const retryMs = 250

export function buildReader(store: JournalSource): JournalReader {
  /** The last pages, and those that are being read. */
  let pages: KeptPage[] = []
  let session: unknown
  /** The three queues. */
  const idle = new Set<Follower>()
  const woken = new Set<Follower>()
  const behind = new Set<Follower>()
  let end: Position | undefined
  let followers = 0
  let stopWatching: (() => void) | undefined
  let wakeTimer: NodeJS.Timeout | undefined
  let wakes = 0
  let isServing = false

  async function* follow(after: Position | 'oldest', signal: AbortSignal) {
    const follower: Follower = { position: after, queue: undefined, give() {}, fail() {} }
    const leave = () => takeOut(follower).give(undefined)
    signal.addEventListener('abort', leave)
    if (followers++ === 0) watch()
    try {
      while (!signal.aborted) {
        const page = await new Promise<Read | undefined>((resolve, reject) => {
          follower.give = resolve
          follower.fail = reject
          enqueue(follower, follower.position === end ? idle : behind)
        })
        if (page === undefined) return
        yield page
        if (typeof page === 'string') return
        follower.position = page.end
      }
    } finally {
      signal.removeEventListener('abort', leave)
      if (--followers === 0) rest()
    }
  }

  function watch(): void {
    forgetEnd()
    stopWatching = store.watchJournal(announce)
  }

  function rest(): void {
    stopWatching?.()
    clearTimeout(wakeTimer)
    stopWatching = undefined
    wakeTimer = undefined
    pages = []
  }

  function announce(): void {
    wakeTimer ??= setTimeout(wake, wakeMs + followers * wakeMsOfFollower).unref()
  }

  function wake(): void {
    wakeTimer = undefined
    if (woken.size > 0) announce()
    else {
      forgetEnd()
      for (const follower of idle) enqueue(follower, woken)
    }
  }

  function forgetEnd(): void {
    wakes++
    end = undefined
  }

  function enqueue(follower: Follower, queue: Set<Follower>): void {
    takeOut(follower).queue = queue.add(follower)
    if (queue !== idle && !isServing) void serve()
  }

  function takeOut(follower: Follower): Follower {
    follower.queue?.delete(follower)
    follower.queue = undefined
    return follower
  }

  async function serve(): Promise<void> {
    isServing = true
    while (woken.size + behind.size > 0) {
      await nextTurn()
      await serveFirst(woken.size > 0 ? woken : behind)
    }
    isServing = false
  }

  /** One turn of the event loop: a page for the first of a queue, and others at its position. */
  async function serveFirst(queue: Set<Follower>): Promise<void> {
    const [first] = queue
    if (first === undefined) return
    const { position } = first
    const reading = queue === behind ? readOn(position) : read(position)
    const page = await reading.catch(() => undefined)
    let room = followersPerTurn
    for (const follower of queue) {
      if (follower.position !== position) continue
      if (page === undefined) {
        if (queue === behind) reading.catch(takeOut(follower).fail)
        else {
          enqueue(follower, idle)
          wakeTimer ??= setTimeout(wake, retryMs).unref()
        }
      } else if (typeof page === 'string' || page.events.length > 0) {
        takeOut(follower).give(page)
        if (--room === 0) return
      } else if (page.end === end) {
        follower.position = end
        enqueue(follower, idle)
      }
    }
  }

  function keptPages(): readonly KeptPage[] {
    const current = store.journalSession?.()
    if (current !== session) pages = []
    session = current
    return pages
  }

  function read(after: Position | 'oldest'): Promise<Read> {
    const known = keptPages().find((page) => page.after === after)
    if (known !== undefined) return known.reading
    const kept: KeptPage = { after, reading: readOnce(after) }
    pages.push(kept)
    kept.reading.then(
      (page) => keep(kept, page),
      () => drop(kept),
    )
    return kept.reading
  }

  /** The rest of a kept page, if the position is within one. From its end on, followers share. */
  async function readOn(after: Position | 'oldest'): Promise<Read> {
    for (const { page } of keptPages()) {
      if (page === undefined) continue
      const events = page.events.slice(page.events.findIndex((one) => one.position === after) + 1)
      const isWithin = events.length > 0 && events.length < page.events.length
      if (isWithin) return { begin: after, end: page.end, isLast: page.isLast, events }
    }
    return read(after)
  }

  async function readOnce(after: Position | 'oldest'): Promise<Read> {
    const wakesBefore = wakes
    const page = await store.readJournal(after, pageEvents)
    const isEnd = typeof page !== 'string' && page.isLast
    if (isEnd && stopWatching !== undefined && wakes === wakesBefore) end = page.end
    return page
  }

  function keep(kept: KeptPage, page: Read): void {
    // After a trim, another page is the oldest.
    if (typeof page === 'string' || page.events.length === 0 || kept.after === 'oldest') drop(kept)
    else kept.page = page
    pages = pages.slice(-maxPages)
  }

  function drop(kept: KeptPage): void {
    pages = pages.filter((one) => one !== kept)
  }

  return { follow, read }
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
