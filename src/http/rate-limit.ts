import { Failure } from '../contract/errors.ts'
import type { Exchange } from './answer.ts'

/** How many requests a token may make in a window of time. */
export interface RateLimit {
  readonly requests: number
  readonly windowMs: number
}

interface Window {
  readonly endsAt: number
  used: number
}

export type TokenCount = ReturnType<typeof buildTokenCount>

/** Counts by token, in this process. A window begins with the first request in it. */
export function buildTokenCount(windowMs: number) {
  /** In the order in which they end, since all are equally long. */
  const windows = new Map<string, Window>()

  function findWindow(tokenId: string, now: number): Window {
    const current = windows.get(tokenId)
    if (current !== undefined && now < current.endsAt) return current
    forgetEnded(now)
    const next = { endsAt: now + windowMs, used: 0 }
    windows.set(tokenId, next)
    return next
  }

  function forgetEnded(now: number): void {
    for (const [tokenId, { endsAt }] of windows) {
      if (endsAt > now) return
      windows.delete(tokenId)
    }
  }

  /** Counts one more for this token. Returns how many there are, and when the window ends. */
  return (tokenId: string): { used: number; endsInSeconds: number } => {
    const now = performance.now()
    const window = findWindow(tokenId, now)
    window.used++
    return { used: window.used, endsInSeconds: Math.ceil((window.endsAt - now) / 1000) }
  }
}

/**
 * Counts every request with a token, and adds the remaining quota to its answer, in the fields of
 * draft-ietf-httpapi-ratelimit-headers. Returns the refusal of a request beyond the limit.
 */
export function buildRateLimit({ requests, windowMs }: RateLimit) {
  const count = buildTokenCount(windowMs)
  const policy = `"token";q=${requests};w=${windowMs / 1000}`

  return (tokenId: string, { fields }: Exchange): Failure | undefined => {
    const { used, endsInSeconds } = count(tokenId)
    fields.push('RateLimit-Policy', policy)
    fields.push('RateLimit', `"token";r=${Math.max(0, requests - used)};t=${endsInSeconds}`)
    if (used <= requests) return undefined
    return new Failure(
      42900,
      `This token has made its ${requests} requests. Try again in ${endsInSeconds} s.`,
      { headers: { 'Retry-After': String(endsInSeconds) }, reason: 'rate_limit' },
    )
  }
}
