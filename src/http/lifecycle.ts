import type { Server } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'
import { promisify } from 'node:util'
import type { Limits } from '../contract/limits.ts'

/** What the answers have to know about a shutdown. */
export interface Lifecycle {
  isDraining: boolean
}

/**
 * Ends a server without losing a request. While it drains, readiness says no and each connection is closed after its
 * next answer. Where there are clients, they get a short grace to notice; then no new connection is taken, idle ones
 * are closed, and whatever is still open when the time is over is cut. Answers how many were cut.
 */
export async function drain(server: Server, lifecycle: Lifecycle, limits: Limits): Promise<number> {
  const countConnections = promisify(server.getConnections.bind(server))
  const deadline = sleep(limits.shutdownMs, undefined, { ref: false })
  lifecycle.isDraining = true
  const startedAt = performance.now()
  while ((await countConnections()) > 0 && performance.now() - startedAt < limits.idleGraceMs) {
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
