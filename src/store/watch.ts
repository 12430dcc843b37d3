/** Notifies watchers of possible changes. */
export interface Watch {
  /** Adds a watcher. Returns a function that removes it. */
  add(onChange: () => void): () => void
  /** Calls every watcher. */
  wake(): void
  /** Calls every watcher after this time, unless a call is already scheduled. */
  wakeIn(delayMs: number): void
}

/**
 * Builds a watch. While anybody watches, it polls every `pollMs` and wakes the watchers when the
 * polled value changes.
 */
export function buildWatch<Value>(poll: () => Value | Promise<Value>, pollMs: number): Watch {
  const watchers = new Set<() => void>()
  let pollTimer: NodeJS.Timeout | undefined
  let wakeTimer: NodeJS.Timeout | undefined
  let seen: Value | undefined

  function wake(): void {
    for (const onChange of watchers) onChange()
  }

  async function pollOnce(): Promise<void> {
    try {
      const found = await poll()
      if (found !== seen) wake()
      seen = found
    } catch {
      // The store is unreachable. Watchers find out when they read.
      wake()
    }
    if (watchers.size > 0) pollTimer = setTimeout(pollOnce, pollMs).unref()
    else pollTimer = undefined
  }

  return {
    wake,
    add(onChange) {
      watchers.add(onChange)
      if (pollTimer === undefined) pollTimer = setTimeout(pollOnce, pollMs).unref()
      return () => void watchers.delete(onChange)
    },
    wakeIn(delayMs) {
      if (watchers.size === 0) return
      if (wakeTimer !== undefined) return
      wakeTimer = setTimeout(() => {
        wakeTimer = undefined
        wake()
      }, delayMs).unref()
    },
  }
}
