import type { WebhookType } from '../contract/webhooks.ts'
import type { Delivery, NewDelivery } from '../store/receivers.ts'
import { maxRetryAfterMs } from './schedule.ts'

/** A delivery as this process knows it: its row in the store, and when it may be sent. */
export interface Row {
  readonly position: string
  readonly plantId: bigint
  readonly type: WebhookType
  readonly body: string
  attempts: number
  /** When the next attempt is due: in wall-clock time, and by `performance.now()`. */
  dueAt: number | undefined
  readyAt: number
  lastStatus: number | undefined
  lastError: string | undefined
  /** Busy from the start of an attempt until its outcome is saved. */
  isBusy: boolean
  /** Whether the receiver has acknowledged it. */
  isDone: boolean
}

/** The rows that wait for a receiver, queued by plant: only the first of each may be sent. */
export interface Queue {
  /** Adds a row as the last of its plant. */
  add(row: Row): void
  /** Replaces all rows that are not busy. */
  reset(rows: readonly Row[]): void
  has(position: string): boolean
  /** The next row that may be sent. */
  peek(): Row | undefined
  /** Takes that row and marks it as busy. */
  next(): Row
  /** Puts a busy row back, to be sent when it is due. */
  putBack(row: Row): void
  /** Removes a busy row. The next of its plant may be sent. */
  remove(row: Row): void
  /** How many rows there are, and how many of them are busy. */
  readonly counts: { readonly rows: number; readonly busy: number }
  /** Sends nothing more. */
  close(): void
}

/** Opens a queue. `onReady` is called when a row becomes due. */
export function openQueue(onReady: () => void): Queue {
  const rows = new Map<string, Row>()
  const byPlant = new Map<bigint, Row[]>()
  let ready: Row[] = []
  const delayed = new Set<Row>()
  const counts = { rows: 0, busy: 0 }
  let timer: NodeJS.Timeout | undefined
  let timerAt = Infinity

  function add(row: Row): void {
    rows.set(row.position, row)
    counts.rows++
    const ofPlant = byPlant.get(row.plantId)
    if (ofPlant !== undefined) ofPlant.push(row)
    else {
      byPlant.set(row.plantId, [row])
      schedule(row)
    }
  }

  function schedule(row: Row): void {
    if (row.readyAt > performance.now()) {
      delayed.add(row)
      if (row.readyAt < timerAt) arm(row.readyAt)
      // Retries go first: they have waited until they were due.
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
    for (const row of waiting) schedule(row)
    onReady()
  }

  function forget(row: Row): void {
    rows.delete(row.position)
    counts.rows--
  }

  function clear(): void {
    clearTimeout(timer)
    timerAt = Infinity
    ready = []
    delayed.clear()
    byPlant.clear()
  }

  return {
    add,
    reset(fresh) {
      clear()
      for (const row of rows.values()) {
        if (row.isBusy) byPlant.set(row.plantId, [row])
        else forget(row)
      }
      for (const row of fresh) if (!rows.has(row.position)) add(row)
    },
    has: (position) => rows.has(position),
    peek: () => ready[0],
    next() {
      const row = ready.shift() as Row
      row.isBusy = true
      counts.busy++
      return row
    },
    putBack(row) {
      row.isBusy = false
      counts.busy--
      schedule(row)
    },
    remove(row) {
      counts.busy--
      forget(row)
      const ofPlant = byPlant.get(row.plantId) ?? []
      ofPlant.shift()
      const [next] = ofPlant
      if (next === undefined) byPlant.delete(row.plantId)
      else schedule(next)
    },
    counts,
    close: clear,
  }
}

const unsent = {
  attempts: 0,
  readyAt: 0,
  lastStatus: undefined,
  lastError: undefined,
  isBusy: false,
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
