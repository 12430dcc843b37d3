import type { Delivery, NewDelivery } from '../store/receivers.ts'
import { maxRetryAfterMs } from './schedule.ts'

/** A delivery as this process knows it: its row in the store, and when it may be sent. */
export interface Row extends Omit<Delivery, 'at'> {
  /** When the next attempt is due, by `performance.now()`; `dueAt` is wall-clock time. */
  readyAt: number
  /** Whether the receiver has acknowledged it. */
  isDone: boolean
}

export type Queue = ReturnType<typeof openQueue>

/**
 * Opens a queue of the rows that wait for a receiver. They are queued by plant: only the first of
 * each may be sent. `onReady` is called when a row becomes due.
 */
export function openQueue(onReady: () => void) {
  const rows = new Map<string, Row>()
  const byPlant = new Map<bigint, Row[]>()
  let ready: Row[] = []
  const delayed = new Set<Row>()
  /** From the start of an attempt until its outcome is saved. */
  const busy = new Set<Row>()
  let timer: NodeJS.Timeout | undefined
  let timerAt = Infinity

  /** Adds a row as the last of its plant. */
  function add(row: Row): void {
    rows.set(row.position, row)
    const ofPlant = byPlant.get(row.plantId)
    if (ofPlant !== undefined) ofPlant.push(row)
    else {
      byPlant.set(row.plantId, [row])
      lineUp(row)
    }
  }

  /** Makes the first row of a plant ready, or delays it. Retries go first: they have waited. */
  function lineUp(row: Row): void {
    if (row.readyAt > performance.now()) {
      delayed.add(row)
      if (row.readyAt < timerAt) arm(row.readyAt)
    } else if (row.attempts > 0) ready.unshift(row)
    else ready.push(row)
  }

  function arm(at: number): void {
    clearTimeout(timer)
    timerAt = at
    timer = setTimeout(release, Math.max(at - performance.now(), 1)).unref()
  }

  function release(): void {
    timerAt = Infinity
    const waiting = [...delayed]
    delayed.clear()
    for (const row of waiting) lineUp(row)
    onReady()
  }

  /** Sends nothing more. */
  function clear(): void {
    clearTimeout(timer)
    timerAt = Infinity
    ready = []
    delayed.clear()
    byPlant.clear()
  }

  return {
    add,
    /** Replaces all rows that are not busy. */
    reset(fresh: readonly Row[]): void {
      clear()
      rows.clear()
      for (const row of busy) {
        rows.set(row.position, row)
        byPlant.set(row.plantId, [row])
      }
      for (const row of fresh) if (!rows.has(row.position)) add(row)
    },
    has: (position: string) => rows.has(position),
    /** The next row that may be sent. */
    peek: () => ready[0],
    /** Takes that row and marks it as busy. */
    next(): Row {
      const row = ready.shift() as Row
      busy.add(row)
      return row
    },
    /** Puts a busy row back, to be sent when it is due. */
    putBack(row: Row): void {
      busy.delete(row)
      lineUp(row)
    },
    /** Removes a busy row. The next of its plant may be sent. */
    remove(row: Row): void {
      busy.delete(row)
      rows.delete(row.position)
      const ofPlant = byPlant.get(row.plantId) ?? []
      ofPlant.shift()
      const [next] = ofPlant
      if (next === undefined) byPlant.delete(row.plantId)
      else lineUp(next)
    },
    countRows: () => rows.size,
    countBusy: () => busy.size,
    /** Whether some row has failed, and is neither done nor given up. */
    hasRetries: () =>
      rows.values().some((row) => row.attempts > 0 && !row.isDone && row.dueAt !== undefined),
    close: clear,
  }
}

const unsent = {
  attempts: 0,
  readyAt: 0,
  lastStatus: undefined,
  lastError: undefined,
  isDone: false,
}

/** The row of a change that was taken from the journal. */
export function toNewRow({ at, ...delivery }: NewDelivery): Row {
  return { ...unsent, ...delivery, dueAt: at }
}

/**
 * The row of a delivery that the store has. After the clock was set back, a first attempt is not
 * delayed, and a retry by no more than the longest pause.
 */
export function toKnownRow(delivery: Delivery, now: number): Row {
  const { attempts, dueAt = 0 } = delivery
  const delayMs = attempts === 0 ? 0 : Math.min(Math.max(dueAt - now, 0), maxRetryAfterMs * 1.2)
  return { ...unsent, ...delivery, readyAt: delayMs === 0 ? 0 : performance.now() + delayMs }
}
