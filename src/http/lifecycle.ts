import type { Server } from 'node:http'
import { Server as NetServer } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Limits } from '../contract/limits.ts'

/** What the answers have to know about a shutdown. */
export interface Lifecycle {
  isDraining: boolean
}

/**
 * Ends a server without losing a request: no new connections, each connection closed after the answer that it
 * waits for. Clients that keep a connection open without using it get a short grace, because one of them may just
 * be sending; whatever is still open in the end is cut.
 */
export async function drain(server: Server, lifecycle: Lifecycle, limits: Limits): Promise<void> {
  lifecycle.isDraining = true
  // The close of an HTTP server would cut the idle connections at once; that of the net server below it does not.
  const closed = new Promise<void>((resolve) => {
    NetServer.prototype.close.call(server, () => resolve())
  })
  const deadline = sleep(limits.shutdownMs, undefined, { ref: false })
  await Promise.race([closed, sleep(limits.idleGraceMs, undefined, { ref: false })])
  const closeIdle = setInterval(() => server.closeIdleConnections(), 50)
  await Promise.race([closed, deadline])
  clearInterval(closeIdle)
  server.closeAllConnections()
  await closed
}
