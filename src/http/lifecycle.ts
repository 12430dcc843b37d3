import type { Server } from 'node:http'
import type { Socket } from 'node:net'
import { setImmediate as nextTurn, setTimeout as sleep } from 'node:timers/promises'
import { promisify } from 'node:util'
import type { Timeouts } from '../contract/limits.ts'

/** What the answers have to know about a shutdown. */
export interface Lifecycle {
  isDraining: boolean
}

/** Whether the grace lasts its full time, or ends when nobody is connected any more. */
export type Grace = 'hold' | 'hurry'

/**
 * Ends a server without losing a request. While it drains, readiness says no and each connection is closed after its
 * next answer. For a short grace it serves on, so that clients notice and go elsewhere; then no new connection is taken,
 * those that were idle for so long are closed, and whatever is still open when the time is over is cut. Answers how many
 * were cut.
 */
export async function drain(
  server: Server,
  lifecycle: Lifecycle,
  timeouts: Timeouts,
  grace: Grace,
): Promise<number> {
  const countConnections = promisify(server.getConnections.bind(server))
  const deadline = sleep(timeouts.shutdownMs, undefined, { ref: false })
  lifecycle.isDraining = true
  // An answer that was begun before does not say that it is the last: its client may go on, and has the grace for it.
  server.keepAliveTimeout = Math.max(1, timeouts.idleGraceMs)
  server.keepAliveTimeoutBuffer = 0
  const newcomers = watchNewcomers(server)
  const graceEndsAt = performance.now() + timeouts.idleGraceMs
  while (performance.now() < graceEndsAt) {
    if (grace === 'hurry' && (await countConnections()) === 0) break
    await sleep(10)
  }
  const { closed } = await closePort(server, newcomers)
  const closeSilent = setTimeout(() => newcomers.closeSilent(), firstByteMs)
  await Promise.race([closed, deadline])
  clearTimeout(closeSilent)
  const cut = await countConnections()
  server.closeAllConnections()
  await closed
  return cut
}

/** How long a new connection may be silent before it counts as idle. For Node it is idle from the start. */
const firstByteMs = 500

interface Newcomers {
  /** Whether there is one whose request may be on its way. */
  areAwaited(): boolean
  closeSilent(): Promise<void>
}

/** Watches the connections that are new from now on. */
function watchNewcomers(server: Server): Newcomers {
  const sinceBy = new Map<Socket, number>()
  server.on('connection', (socket) => {
    sinceBy.set(socket, performance.now())
    socket.once('close', () => sinceBy.delete(socket))
  })
  const findSilent = () => [...sinceBy].filter(([socket]) => socket.bytesRead === 0)
  return {
    areAwaited: () => findSilent().some(([, since]) => performance.now() - since < firstByteMs),
    async closeSilent() {
      await nextTurn()
      for (const [socket] of findSilent()) socket.destroy()
    },
  }
}

/** Nobody new comes for so many looks in a row before the port is closed: a commit takes the time of one of them. */
const quietLooks = 3
const lookMs = 10
/** How long connections may go on to come in one after the other before the port is closed all the same. */
const lastTakenMs = 500

/**
 * Closes the port, and what is idle. The system resets the connections that wait there to be taken, and one is taken with
 * each turn of the event loop: so all are taken first, and served when the port is closed. Nobody who is served meanwhile
 * can come back.
 */
async function closePort(server: Server, newcomers: Newcomers): Promise<{ closed: Promise<void> }> {
  const taken: Socket[] = []
  const listeners = server.rawListeners('connection') as ((socket: Socket) => void)[]
  server.removeAllListeners('connection')
  server.on('connection', (socket) => {
    taken.push(socket)
    // Nobody else listens yet, and a client that resets its connection would end the process.
    socket.on('error', () => socket.destroy())
  })
  const deadline = performance.now() + lastTakenMs
  for (let quiet = 0; quiet < quietLooks && performance.now() < deadline; quiet++) {
    const before = taken.length
    await sleep(lookMs)
    // Once more after a commit, which lets nobody in and reads nothing while it lasts.
    await nextTurn()
    if (taken.length > before || newcomers.areAwaited()) quiet = -1
  }
  const closed = new Promise<void>((resolve) => server.close(() => resolve()))
  server.removeAllListeners('connection')
  for (const listener of listeners) server.on('connection', listener)
  for (const socket of taken) if (!socket.destroyed) server.emit('connection', socket)
  return { closed }
}
