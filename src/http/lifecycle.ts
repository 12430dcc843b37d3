import type { Server } from 'node:http'
import type { Socket } from 'node:net'
import { setImmediate as nextTurn, setTimeout as sleep } from 'node:timers/promises'
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
  const { closed } = await closePort(server)
  const closeIdle = setInterval(() => server.closeIdleConnections(), 50)
  await Promise.race([closed, deadline])
  clearInterval(closeIdle)
  const cut = await countConnections()
  server.closeAllConnections()
  await closed
  return cut
}

/** Nobody new comes for so many looks in a row before the port is closed: a commit takes the time of one of them. */
const quietLooks = 3
const lookMs = 10
/** How long connections may go on to come in one after the other before the port is closed all the same. */
const lastTakenMs = 500

/**
 * Closes the port. The system resets the connections that wait there to be taken, and one is taken with each turn of the
 * event loop: so all are taken first, and served when the port is closed. Nobody who is served meanwhile can come back.
 */
async function closePort(server: Server): Promise<{ closed: Promise<void> }> {
  const taken: Socket[] = []
  const listeners = server.rawListeners('connection') as ((socket: Socket) => void)[]
  server.removeAllListeners('connection')
  server.on('connection', (socket) => taken.push(socket))
  const deadline = performance.now() + lastTakenMs
  for (let quiet = 0; quiet < quietLooks && performance.now() < deadline; quiet++) {
    const before = taken.length
    await sleep(lookMs)
    // Once more after a commit, which lets nobody in while it lasts.
    await nextTurn()
    if (taken.length > before) quiet = -1
  }
  const closed = new Promise<void>((resolve) => server.close(() => resolve()))
  server.removeAllListeners('connection')
  for (const listener of listeners) server.on('connection', listener)
  for (const socket of taken) server.emit('connection', socket)
  return { closed }
}
