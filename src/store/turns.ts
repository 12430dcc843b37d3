import { setImmediate as nextTurn } from 'node:timers/promises'
import { limits } from '../contract/limits.ts'

/**
 * Builds a line for the pieces of long work. A turn of the event loop does them for
 * `limits.turnMs`, however many callers have some; the rest wait for the next turn. Await it
 * between two pieces.
 */
export function buildLine(): () => Promise<void> {
  let end = Promise.resolve()
  let turnEndsAt = 0
  async function moveUp(): Promise<void> {
    if (performance.now() < turnEndsAt) return
    await nextTurn()
    turnEndsAt = performance.now() + limits.turnMs
  }
  return () => {
    end = end.then(moveUp)
    return end
  }
}
