/** Tells watchers that there may be something new. */
export interface Watch {
  /** Adds a watcher. Returns a function that removes it. */
  add(onChange: () => void): () => void
  /** Calls every watcher. */
  wake(): void
  /** Calls every watcher after this time, unless that is under way already. */
  wakeIn(delayMs: number): void
}

/**
 * Builds a watch. While it has watchers, it also looks by itself, every `pauseMs`, for a change of
 * what `look` finds.
 */
export function buildWatch<Value>(look: () => Value | Promise<Value>, pauseMs: number): Watch {
  const watchers = new Set<() => void>()
  let lookTimer: NodeJS.Timeout | undefined
  let wakeTimer: NodeJS.Timeout | undefined
  let seen: Value | undefined

  function wake(): void {
    for (const onChange of watchers) onChange()
  }

  async function lookAgain(): Promise<void> {
    try {
      const found = await look()
      if (found !== seen) wake()
      seen = found
    } catch {
      // The store is away. Its watchers find out when they read.
      wake()
    }
    if (watchers.size > 0) lookTimer = setTimeout(lookAgain, pauseMs).unref()
    else lookTimer = undefined
  }

  return {
    wake,
    add(onChange) {
      watchers.add(onChange)
      if (lookTimer === undefined) lookTimer = setTimeout(lookAgain, pauseMs).unref()
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
