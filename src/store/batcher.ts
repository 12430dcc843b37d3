import { overloaded } from '../contract/errors.ts'
import type { BatcherMeasures } from './measures.ts'
import { buildHistogram, observe, secondsBounds } from './measures.ts'

export interface BatcherBounds {
  readonly batchItems: number
  readonly queueItems: number
  readonly batchesInFlight: number
}

/**
 * A disk writes about one batch at a time. The queue holds about a tenth of a second of work. A
 * plant has at most 8 KiB, so 2,000 of them are 16 MiB.
 */
export const defaultBounds = { batchItems: 512, queueItems: 2_000 }

const itemsBounds = [1, 2, 4, 8, 16, 32, 64, 128, 256, 512]

interface Waiting<Item> {
  readonly item: Item
  readonly resolve: (outcome: never) => void
  readonly reject: (reason: unknown) => void
}

/**
 * Collects the items that arrive while the event loop or a batch is busy into one batch, so that
 * writes share an fsync and look-ups share a query. `run` returns one outcome for each item, in
 * order. When it fails, every item of that batch fails, and no other.
 */
export function buildBatcher<Item>(
  run: (items: Item[]) => unknown[] | Promise<unknown[]>,
  bounds: BatcherBounds,
) {
  const queue: Waiting<Item>[] = []
  const batchItems = buildHistogram(itemsBounds)
  const batchSeconds = buildHistogram(secondsBounds)
  // Not a set: V8 chains its outgrown tables, which would keep finished batches in memory.
  const batches: Waiting<Item>[][] = []
  let isFlushScheduled = false
  let onDrained: (() => void)[] = []

  /** Resolves with the outcome of the item when its batch has run. */
  function submit<Outcome>(item: Item): Promise<Outcome> {
    return new Promise((resolve, reject) => {
      if (isFull()) {
        reject(overloaded())
        return
      }
      queue.push({ item, resolve, reject })
      scheduleFlush()
    })
  }

  function isFull(): boolean {
    return queue.length >= bounds.queueItems
  }

  function scheduleFlush(): void {
    if (isFlushScheduled || batches.length === bounds.batchesInFlight || queue.length === 0) return
    isFlushScheduled = true
    // Runs after all sockets of this turn have been read, so that their requests share the batch.
    setImmediate(flush)
  }

  async function flush(): Promise<void> {
    isFlushScheduled = false
    const batch = queue.splice(0, bounds.batchItems)
    const startedAt = performance.now()
    batches.push(batch)
    scheduleFlush()
    try {
      const outcomes = await run(batch.map(({ item }) => item))
      batch.forEach(({ resolve }, index) => {
        resolve(outcomes[index] as never)
      })
    } catch (error) {
      for (const { reject } of batch) reject(error)
    }
    observe(batchItems, batch.length)
    observe(batchSeconds, (performance.now() - startedAt) / 1000)
    batches.splice(batches.indexOf(batch), 1)
    scheduleFlush()
    if (batches.length > 0 || queue.length > 0) return
    for (const resolve of onDrained) resolve()
    onDrained = []
  }

  /**
   * Rejects each item, waiting or in flight, for which `findReason` returns a reason. Returns
   * whether there are any items.
   */
  function giveUp(findReason: (item: Item) => unknown): boolean {
    for (const { item, reject } of [...batches, queue].flat()) {
      const reason = findReason(item)
      if (reason !== undefined) reject(reason)
    }
    return batches.length > 0 || queue.length > 0
  }

  /** Resolves when no item is waiting or in flight. */
  function drain(): Promise<void> {
    if (batches.length === 0 && queue.length === 0) return Promise.resolve()
    return new Promise((resolve) => onDrained.push(resolve))
  }

  function measure(): BatcherMeasures {
    return { queuedWrites: queue.length, batchItems, batchSeconds }
  }

  return { submit, giveUp, isFull, drain, measure }
}
