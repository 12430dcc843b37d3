/** Aborts work that takes too long. */
export interface TimeLimit {
  start(work: AbortController): void
  stop(work: AbortController): void
}

/** In browsers a timer is a number. Elsewhere, `unref` lets the process exit before it fires. */
type Timer = number | { ref(): unknown; unref(): unknown }

/**
 * One timer serves all work under a limit: a timer for each request costs more than its parsing.
 * Without work it keeps no process alive: it has no reference then, or is cleared.
 */
export function buildTimeLimit(ms: number): TimeLimit {
  /** In the order of their deadlines, since all have the same time. */
  const deadlines = new Map<AbortController, number>()
  let timer: Timer | undefined

  function expire(): void {
    const now = performance.now()
    for (const [work, deadline] of deadlines) {
      if (deadline > now) break
      deadlines.delete(work)
      work.abort(new Error(`No answer within ${ms} ms.`))
    }
    const [next] = deadlines.values()
    timer = next === undefined ? undefined : setTimeout(expire, next - now)
  }

  return {
    start(work) {
      deadlines.set(work, performance.now() + ms)
      timer ??= setTimeout(expire, ms)
      if (deadlines.size === 1 && typeof timer === 'object') timer.ref()
    },
    stop(work) {
      deadlines.delete(work)
      if (deadlines.size > 0) return
      if (typeof timer === 'object') timer.unref()
      else {
        clearTimeout(timer)
        timer = undefined
      }
    },
  }
}
