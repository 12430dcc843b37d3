import type { Server } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'
import { promisify } from 'node:util'
import type { Limits } from '../contract/limits.ts'

/** What the answers have to know about a shutdown. */
export interface Lifecycle {
  isDraining: boolean
}

/** Whether the grace lasts its full time, or ends when nobody is connected any more. */
export type Patience = 'hold' | 'hurry'

/**
 * Ends a server without losing a request. While it drains, readiness says no and each connection is closed after its
 * next answer. For a short grace it serves on, so that clients notice and go elsewhere; then no new connection is taken,
 * idle ones are closed, and whatever is still open when the time is over is cut. Answers how many were cut.
 */
export async function drain(
  server: Server,
  lifecycle: Lifecycle,
  limits: Limits,
  patience: Patience,
): Promise<number> {
  const countConnections = promisify(server.getConnections.bind(server))
  const deadline = sleep(limits.shutdownMs, undefined, { ref: false })
  lifecycle.isDraining = true
  const graceEndsAt = performance.now() + limits.idleGraceMs
  while (performance.now() < graceEndsAt) {
    if (patience === 'hurry' && (await countConnections()) === 0) break
    await sleep(10)
  }
  const closed = new Promise<void>((resolve) => server.close(() => resolve()))
  const closeIdle = setInterval(() => server.closeIdleConnections(), 50)
  await Promise.race([closed, deadline])
  clearInterval(closeIdle)
  const cut = await countConnections()
  server.closeAllConnections()
  await closed
  return cut
}
