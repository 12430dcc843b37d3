/** Aborts whatever takes longer than a time. */
export interface TimeLimit {
  start(work: AbortController): void
  stop(work: AbortController): void
}

/** Node.js, Deno and Bun let a timer rest. Browsers number theirs. */
type Timer = number | { ref(): unknown; unref(): unknown }

/**
 * One timer serves all work under a limit: a timer for each request costs more than its parsing.
 * Between requests it rests, or is cleared: it keeps no process alive.
 */
export function buildTimeLimit(ms: number): TimeLimit {
  /** The next one to abort comes first, since all have the same time. */
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
