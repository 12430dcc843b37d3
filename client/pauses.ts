/** The bounds of random pauses: that of the first, and the most that it grows to. */
interface Pauses {
  readonly firstMs: number
  readonly maxMs: number
}

/** Before another attempt, while the service cannot be reached. */
export const retryPauses: Pauses = { firstMs: 250, maxMs: 8_000 }
/** Before another attempt after another client was quicker. */
export const conflictPauses: Pauses = { firstMs: 10, maxMs: 1_000 }
/** A call never waits longer than this for its next attempt, whatever the service asks for. */
export const maxRetryAfterMs = 60_000

/** A random pause below a bound that doubles with each retry, so that clients spread out. */
export function toJitterMs(retry: number, { firstMs, maxMs }: Pauses): number {
  return Math.random() * Math.min(firstMs * 2 ** retry, maxMs)
}

/** The pause that `Retry-After` asks for; 0 if it is no number of seconds and no date. */
export function toRetryAfterMs(headers: Headers): number {
  const text = headers.get('Retry-After') ?? ''
  const ms = /^\d+$/.test(text) ? Number(text) * 1_000 : Date.parse(text) - Date.now()
  return ms > 0 ? ms : 0
}

/** Waits, or rejects with the reason of the signal as soon as that aborts. */
export function pause(ms: number, signal: AbortSignal | undefined): Promise<void> {
  return new Promise((resolve, reject) => {
    const stop = () => {
      clearTimeout(timer)
      reject(signal?.reason)
    }
    const timer = setTimeout(() => {
      signal?.removeEventListener('abort', stop)
      resolve()
    }, ms)
    if (signal?.aborted) stop()
    else signal?.addEventListener('abort', stop, { once: true })
  })
}
