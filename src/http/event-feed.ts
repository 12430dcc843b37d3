import { setImmediate as nextTurn, setTimeout as sleep } from 'node:timers/promises'
import { toEventJson } from '../json/write.ts'
import type { JournalEvent, JournalPage, Position, Store } from '../store/store.ts'
import { buildGate } from './gate.ts'
import { buildRecentEvents } from './recent-events.ts'

/** A client that follows the journal. */
export interface Follower {
  /** The position of the last change that it was given. */
  position: Position
  /** Takes the changes after its position. Returns whether it can take more now. */
  take(events: StreamBytes): boolean
  /** Hears of changes that it could not take. */
  miss(bytes: number): void
  /** Its position is gone, or the store is away: it has to come again. */
  cut(): void
}

/** A piece of a stream, made once for all followers: as a chunk of HTTP/1.1, and unframed. */
export interface StreamBytes {
  readonly chunk: Buffer
  readonly content: Buffer
}

/** Gives every follower every change, however far behind it begins. */
export interface EventFeed {
  follow(follower: Follower): void
  /** Goes on with a follower that can take more again. */
  goOn(follower: Follower): void
  leave(follower: Follower): void
}

const pageSize = 1_000
/** How many followers are served without a turn for others, and how many read at a time. */
const followersInARow = 50
const maxReaders = 4
/** After a delivery comes a pause of this many times its time: changes gather, and writes go on. */
const pauseFactor = 19
/** A change waits for a pause and at most two deliveries: with 1,000 followers, 2 x 10 ms. */
const maxPauseMs = 10

/**
 * Builds the feed of a process. It reads each change once and writes it once, for all followers
 * that are at the end of the journal; one that is behind reads by itself until it is there, too.
 */
export function buildEventFeed(store: Store): EventFeed {
  const live = new Set<Follower>()
  const behind = new Set<Follower>()
  const recent = buildRecentEvents()
  const whenFree = buildGate(maxReaders)
  let end: Position | undefined
  let stopWatching: (() => void) | undefined
  let advancing: Promise<void> | undefined
  let isPumping = false
  let isWoken = false

  function wake(): void {
    isWoken = true
    if (!isPumping) void pump()
  }

  async function pump(): Promise<void> {
    isPumping = true
    while (isWoken && stopWatching !== undefined) {
      isWoken = false
      // The answers to the changes go first.
      await nextTurn()
      const startedAt = performance.now()
      // While the store is away, the watch wakes again and again.
      await advance().catch(() => {})
      const spentMs = performance.now() - startedAt
      await sleep(Math.min(spentMs * pauseFactor, maxPauseMs))
    }
    isPumping = false
  }

  /** Brings every follower that is at the end to the new end. */
  function advance(): Promise<void> {
    advancing ??= readOn().finally(() => {
      advancing = undefined
    })
    return advancing
  }

  async function readOn(): Promise<void> {
    while (end !== undefined) {
      const page = await store.readJournal(end, pageSize)
      if (end === undefined) return
      if (typeof page === 'string') return cutAll()
      if (page.events.length > 0) await deliver(page)
      if (page.isLast) return
    }
  }

  async function deliver(page: JournalPage): Promise<void> {
    const before = end
    const bytes = toBytes(page.events)
    recent.add(page.events, bytes.chunk.length)
    end = page.end
    for (const follower of behind) follower.miss(bytes.chunk.length)
    let served = 0
    for (const follower of [...live]) {
      // One that came meanwhile has these changes already.
      if (!live.has(follower) || follower.position !== before) continue
      give(follower, bytes, page.end)
      if (++served % followersInARow === 0) await nextTurn()
    }
  }

  function give(follower: Follower, bytes: StreamBytes, position: Position): void {
    follower.position = position
    if (follower.take(bytes)) return
    live.delete(follower)
    behind.add(follower)
  }

  async function catchUp(follower: Follower): Promise<void> {
    while (behind.has(follower)) {
      if (tryJoin(follower)) return
      const page = await whenFree(() => store.readJournal(follower.position, pageSize))
      if (!behind.has(follower)) return
      if (typeof page === 'string') return follower.cut()
      if (page.events.length > 0) {
        follower.position = page.end
        if (!follower.take(toBytes(page.events))) return
      } else if (end === undefined) {
        end = page.end
        recent.begin(end)
      } else await advance()
      await nextTurn()
    }
  }

  function tryJoin(follower: Follower): boolean {
    const missed = end === undefined ? undefined : recent.after(follower.position)
    if (end === undefined || missed === undefined) return false
    behind.delete(follower)
    live.add(follower)
    if (missed.length > 0) give(follower, toBytes(missed), end)
    wake()
    return true
  }

  function goOn(follower: Follower): void {
    if (behind.has(follower)) catchUp(follower).catch(() => follower.cut())
  }

  function cutAll(): void {
    for (const follower of [...live, ...behind]) follower.cut()
  }

  return {
    goOn,
    follow(follower) {
      stopWatching ??= store.watchJournal(wake)
      behind.add(follower)
      goOn(follower)
    },
    leave(follower) {
      live.delete(follower)
      behind.delete(follower)
      if (live.size + behind.size > 0) return
      stopWatching?.()
      stopWatching = undefined
      end = undefined
    },
  }
}

/** Frames a piece of a stream. Its content is a part of the chunk, and takes no further memory. */
export function toStreamBytes(text: string): StreamBytes {
  const bytes = Buffer.byteLength(text)
  const size = `${bytes.toString(16)}\r\n`
  const chunk = Buffer.from(`${size}${text}\r\n`)
  return { chunk, content: chunk.subarray(size.length, size.length + bytes) }
}

function toBytes(events: readonly JournalEvent[]): StreamBytes {
  let text = ''
  for (const event of events) text += toText(event)
  return toStreamBytes(text)
}

function toText(event: JournalEvent): string {
  return `id: ${event.position}\nevent: ${event.type}\ndata: ${toEventJson(event)}\n\n`
}
