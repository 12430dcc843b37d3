import type { ReceiverStore } from '../store/receivers.ts'
import type { Dispatcher } from './dispatcher.ts'

/** Saves the progress of every receiver together, one save after the other. */
export interface Saver {
  /** Something is to be saved: now, or together with what comes soon. */
  request(urgency: 'now' | 'later'): void
  /** Resolves when everything announced so far was saved, or could not be. */
  flush(): Promise<void>
  close(): void
}

export interface SaverOptions {
  readonly store: Pick<ReceiverStore, 'save'>
  readonly owner: string
  readonly list: () => Iterable<Dispatcher>
  /** Called with a dispatcher whose receiver another process has taken over. */
  readonly onLost: (dispatcher: Dispatcher) => void
  readonly onError: (error: unknown) => void
  /** Whether requests of clients come first: each save may cost them a commit. */
  readonly isBusy: () => boolean
}

/** How long a save waits if it only skips changes, and any save while clients come first. */
const laterMs = 1_000
const busyMs = 100
/** The pause after a save that failed. */
const retryMs = 250

export function openSaver(options: SaverOptions): Saver {
  const { store, owner, list, onLost, onError, isBusy } = options
  let last = Promise.resolve()
  let isQueued = false
  let timer: NodeJS.Timeout | undefined
  let timerMs = Infinity

  function request(urgency: 'now' | 'later'): void {
    if (isQueued) return
    if (urgency === 'later') schedule(laterMs)
    else if (isBusy()) schedule(busyMs)
    else queue()
  }

  function schedule(delayMs: number): void {
    if (timerMs <= delayMs) return
    clearTimeout(timer)
    timerMs = delayMs
    timer = setTimeout(queue, delayMs).unref()
  }

  function queue(): void {
    clearTimeout(timer)
    timerMs = Infinity
    isQueued = true
    last = last.then(nextTurn).then(save)
  }

  async function save(): Promise<void> {
    isQueued = false
    const unsaved = [...list()].flatMap((dispatcher) => {
      const saved = dispatcher.takeUnsaved()
      return saved === undefined ? [] : [{ dispatcher, saved }]
    })
    if (unsaved.length === 0) return
    try {
      const saved = unsaved.map((one) => one.saved)
      const lost = new Set(await store.save(owner, saved))
      for (const { dispatcher } of unsaved) {
        if (lost.has(dispatcher.id)) onLost(dispatcher)
        else dispatcher.endSave('saved')
      }
    } catch (error) {
      for (const { dispatcher } of unsaved) dispatcher.endSave('failed')
      schedule(retryMs)
      onError(error)
    }
  }

  return {
    request,
    flush() {
      queue()
      return last
    },
    close: () => clearTimeout(timer),
  }
}

/** Comes after every answer that this turn of the event loop can read: they share the save. */
function nextTurn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve))
}
