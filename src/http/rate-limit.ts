import { Failure } from '../contract/errors.ts'
import { addField, type Exchange } from './exchange.ts'

/** How many requests a token may make in a window of time. */
export interface RateLimit {
  readonly requests: number
  readonly windowMs: number
}

interface Window {
  readonly endsAt: number
  used: number
}

/** Windows that have ended are forgotten when there are more than this, once in so long. */
const maxWindows = 10_000
const sweepMs = 1_000

/**
 * Counts the requests of each token, in this process. A window begins with the first request in it. Every answer says how
 * much is left, in the fields of draft-ietf-httpapi-ratelimit-headers; beyond it, requests are refused.
 */
export function buildRateLimit({ requests, windowMs }: RateLimit) {
  const windows = new Map<string, Window>()
  let sweptAt = 0
  const policy = `"token";q=${requests};w=${windowMs / 1000}`

  function findWindow(tokenId: string, now: number): Window {
    const current = windows.get(tokenId)
    if (current !== undefined && now < current.endsAt) return current
    if (windows.size >= maxWindows && now >= sweptAt + sweepMs) forgetEnded(now)
    const next = { endsAt: now + windowMs, used: 0 }
    windows.set(tokenId, next)
    return next
  }

  function forgetEnded(now: number): void {
    sweptAt = now
    for (const [tokenId, { endsAt }] of windows) if (endsAt <= now) windows.delete(tokenId)
  }

  return (tokenId: string, exchange: Exchange): void => {
    const now = performance.now()
    const window = findWindow(tokenId, now)
    window.used++
    const left = Math.max(0, requests - window.used)
    const seconds = Math.ceil((window.endsAt - now) / 1000)
    addField(exchange, 'RateLimit-Policy', policy)
    addField(exchange, 'RateLimit', `"token";r=${left};t=${seconds}`)
    if (window.used <= requests) return
    throw new Failure(
      42900,
      `This token has made its ${requests} requests. Try again in ${seconds} s.`,
      {
        headers: { 'Retry-After': String(seconds) },
      },
    )
  }
}
