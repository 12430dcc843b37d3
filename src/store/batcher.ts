import { overloaded } from '../contract/errors.ts'
import type { BatcherMeasures } from './measures.ts'
import { buildHistogram, observe, secondsBounds } from './measures.ts'

/** An item that waits for its batch, and the memory that it holds. */
export interface Batched {
  readonly bytes: number
}

export interface BatcherBounds {
  readonly batchItems: number
  readonly batchBytes: number
  readonly queueItems: number
  readonly queueBytes: number
  readonly batchesInFlight: number
}

/** A disk writes about one batch at a time. The queue holds about a tenth of a second of work. */
export const defaultBounds = {
  batchItems: 512,
  batchBytes: 8 * 1024 * 1024,
  queueItems: 2_000,
  queueBytes: 64 * 1024 * 1024,
}

export interface Batcher<Item extends Batched> {
  /** Resolves with the outcome of the item when its batch has run. */
  submit<Outcome>(item: Item): Promise<Outcome>
  /**
   * Rejects each item, waiting or in flight, for which `findReason` returns a reason. Returns
   * whether there are any items.
   */
  giveUp(findReason: (item: Item) => unknown): boolean
  isFull(): boolean
  /** Resolves when no item is waiting or in flight. */
  drain(): Promise<void>
  measure(): BatcherMeasures
}

const itemsBounds = [1, 2, 4, 8, 16, 32, 64, 128, 256, 512]

interface Waiting<Item> {
  readonly item: Item
  readonly resolve: (outcome: never) => void
  readonly reject: (reason: unknown) => void
}

/**
 * Collects the items that arrive while the event loop or a batch is busy into one batch, so that
 * writes share an fsync and look-ups share a query. `run` returns one outcome for each item, in
 * order, or for the first ones only: the others come into the next batch. An outcome that is an
 * error fails its item. When `run` fails, every item of that batch fails, and no other.
 */
export function buildBatcher<Item extends Batched>(
  run: (items: Item[]) => unknown[] | Promise<unknown[]>,
  bounds: BatcherBounds,
): Batcher<Item> {
  let queue: Waiting<Item>[] = []
  let queuedBytes = 0
  const batchItems = buildHistogram(itemsBounds)
  const batchSeconds = buildHistogram(secondsBounds)
  // Not a set: V8 chains its outgrown tables, which would keep finished batches in memory.
  const batches: Waiting<Item>[][] = []
  let isFlushScheduled = false
  let onDrained: (() => void)[] = []

  function submit<Outcome>(item: Item): Promise<Outcome> {
    return new Promise((resolve, reject) => {
      if (isFull()) {
        reject(overloaded())
        return
      }
      queue.push({ item, resolve, reject })
      queuedBytes += item.bytes
      scheduleFlush()
    })
  }

  function isFull(): boolean {
    return queue.length >= bounds.queueItems || queuedBytes >= bounds.queueBytes
  }

  function scheduleFlush(): void {
    if (isFlushScheduled || batches.length === bounds.batchesInFlight || queue.length === 0) return
    isFlushScheduled = true
    // Runs after all sockets of this turn have been read, so that their requests share the batch.
    setImmediate(flush)
  }

  function flush(): void {
    isFlushScheduled = false
    const batch = takeBatch()
    const startedAt = performance.now()
    batches.push(batch)
    let outcomes: unknown[] | Promise<unknown[]>
    try {
      outcomes = run(batch.map(({ item }) => item))
    } catch (error) {
      fail(batch, error, startedAt)
      return
    }
    if (Array.isArray(outcomes)) succeed(batch, outcomes, startedAt)
    else {
      outcomes.then(
        (values) => succeed(batch, values, startedAt),
        (error) => fail(batch, error, startedAt),
      )
    }
    scheduleFlush()
  }

  function takeBatch(): Waiting<Item>[] {
    let items = 0
    let bytes = 0
    for (const { item } of queue) {
      // The first item always fits.
      if (items > 0 && bytes + item.bytes > bounds.batchBytes) break
      items++
      bytes += item.bytes
      if (items === bounds.batchItems) break
    }
    queuedBytes -= bytes
    if (items === queue.length) {
      const batch = queue
      queue = []
      return batch
    }
    return queue.splice(0, items)
  }

  function succeed(batch: Waiting<Item>[], outcomes: unknown[], startedAt: number): void {
    outcomes.forEach((outcome, index) => {
      if (outcome instanceof Error) batch[index]?.reject(outcome)
      else batch[index]?.resolve(outcome as never)
    })
    if (outcomes.length < batch.length) queueAgain(batch.slice(outcomes.length))
    finish(batch, outcomes.length, startedAt)
  }

  function queueAgain(items: Waiting<Item>[]): void {
    queue = [...items, ...queue]
    for (const { item } of items) queuedBytes += item.bytes
  }

  function fail(batch: Waiting<Item>[], error: unknown, startedAt: number): void {
    for (const { reject } of batch) reject(error)
    finish(batch, batch.length, startedAt)
  }

  function finish(batch: Waiting<Item>[], items: number, startedAt: number): void {
    observe(batchItems, items)
    observe(batchSeconds, (performance.now() - startedAt) / 1000)
    batches.splice(batches.indexOf(batch), 1)
    scheduleFlush()
    if (batches.length > 0 || queue.length > 0) return
    for (const resolve of onDrained) resolve()
    onDrained = []
  }

  function giveUp(findReason: (item: Item) => unknown): boolean {
    for (const { item, reject } of [...batches, queue].flat()) {
      const reason = findReason(item)
      if (reason !== undefined) reject(reason)
    }
    return batches.length > 0 || queue.length > 0
  }

  function drain(): Promise<void> {
    if (batches.length === 0 && queue.length === 0) return Promise.resolve()
    return new Promise((resolve) => onDrained.push(resolve))
  }

  function measure(): BatcherMeasures {
    return { queuedItems: queue.length, queuedBytes, batchItems, batchSeconds }
  }

  return { submit, giveUp, isFull, drain, measure }
}
