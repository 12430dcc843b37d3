import type { Plant } from '../contract/shapes.ts'
import { Deferred, type Soon } from './soon.ts'
import { overloaded } from './store.ts'

/** A write that waits for its commit, and how much memory it holds meanwhile. */
export interface Write {
  readonly bytes: number
}

/** What a write holds beside the text of its plant. */
export const rowBytes = 64

/** How much memory a plant holds while it waits. */
export function toBytes({ name, tag = '' }: Plant): number {
  return rowBytes + 2 * (name.length + tag.length)
}

export interface BatcherBounds {
  readonly batchItems: number
  readonly batchBytes: number
  readonly queueItems: number
  readonly queueBytes: number
  readonly batchesInFlight: number
}

/** Batches that a disk takes at once, and a queue that holds about a tenth of a second of work. */
export const defaultBounds = {
  batchItems: 512,
  batchBytes: 8 * 1024 * 1024,
  queueItems: 2_000,
  queueBytes: 64 * 1024 * 1024,
}

export interface Batcher<W extends Write> {
  /** Answers the outcome of the write when the commit that holds it is on disk. */
  submit<Outcome>(write: W): Soon<Outcome>
  isFull(): boolean
  /** Resolves when nothing waits any more. */
  drain(): Promise<void>
}

interface Waiting<W> {
  readonly write: W
  readonly outcome: Deferred<never>
}

/**
 * Puts the writes that arrive while the event loop or a commit is busy into one commit, so that they share its
 * fsync. Who is alone never waits for company. `commit` answers one outcome for each write, in order; when it
 * fails, every write of that batch fails, and no other.
 *
 * `commitDelayMs` says how long after a batch its callers are given to come back, as long as fewer writes wait than it had: where
 * a commit takes long, it is better to have them in the next one than in the one after it.
 */
export function buildBatcher<W extends Write>(
  commit: (writes: W[]) => unknown[] | Promise<unknown[]>,
  bounds: BatcherBounds,
  commitDelayMs: () => number = () => 0,
): Batcher<W> {
  let queue: Waiting<W>[] = []
  let queuedBytes = 0
  let batchesInFlight = 0
  let flushIsScheduled = false
  let lastWrites = 0
  let delayedUntil = 0
  let delayTimer: NodeJS.Timeout | undefined
  let drained: (() => void)[] = []

  function submit<Outcome>(write: W): Soon<Outcome> {
    if (isFull()) return Deferred.rejected(overloaded())
    const outcome = new Deferred<never>()
    queue.push({ write, outcome })
    queuedBytes += write.bytes
    scheduleFlush()
    if (delayTimer !== undefined && queue.length >= lastWrites) stopWaiting()
    return outcome
  }

  function isFull(): boolean {
    return queue.length >= bounds.queueItems || queuedBytes >= bounds.queueBytes
  }

  function scheduleFlush(): void {
    if (flushIsScheduled || batchesInFlight === bounds.batchesInFlight || queue.length === 0) return
    flushIsScheduled = true
    const isSmall = delayedUntil > 0 && queue.length < lastWrites
    const waitMs = isSmall ? delayedUntil - performance.now() : 0
    if (waitMs > 0) delayTimer = setTimeout(flush, waitMs)
    // Runs after every request that this turn of the event loop can read, so that they all share the commit.
    else setImmediate(flush)
  }

  function stopWaiting(): void {
    clearTimeout(delayTimer)
    delayTimer = undefined
    setImmediate(flush)
  }

  function flush(): void {
    flushIsScheduled = false
    delayTimer = undefined
    const batch = takeBatch()
    lastWrites = batch.length
    batchesInFlight++
    let outcomes: unknown[] | Promise<unknown[]>
    try {
      outcomes = commit(batch.map(({ write }) => write))
    } catch (error) {
      fail(batch, error)
      return
    }
    if (Array.isArray(outcomes)) succeed(batch, outcomes)
    else {
      outcomes.then(
        (values) => succeed(batch, values),
        (error) => fail(batch, error),
      )
    }
    scheduleFlush()
  }

  function takeBatch(): Waiting<W>[] {
    let writes = 0
    let bytes = 0
    for (const { write } of queue) {
      // The first write always fits, however large it is.
      if (writes > 0 && bytes + write.bytes > bounds.batchBytes) break
      writes++
      bytes += write.bytes
      if (writes === bounds.batchItems) break
    }
    queuedBytes -= bytes
    if (writes === queue.length) {
      const batch = queue
      queue = []
      return batch
    }
    return queue.splice(0, writes)
  }

  function succeed(batch: Waiting<W>[], outcomes: unknown[]): void {
    batch.forEach(({ outcome }, index) => {
      outcome.fulfill(outcomes[index] as never)
    })
    finish()
  }

  function fail(batch: Waiting<W>[], error: unknown): void {
    for (const { outcome } of batch) outcome.reject(error)
    finish()
  }

  function finish(): void {
    batchesInFlight--
    const waitMs = commitDelayMs()
    delayedUntil = waitMs > 0 ? performance.now() + waitMs : 0
    scheduleFlush()
    if (batchesInFlight > 0 || queue.length > 0) return
    for (const resolve of drained) resolve()
    drained = []
  }

  function drain(): Promise<void> {
    if (batchesInFlight === 0 && queue.length === 0) return Promise.resolve()
    return new Promise((resolve) => drained.push(resolve))
  }

  return { submit, isFull, drain }
}
