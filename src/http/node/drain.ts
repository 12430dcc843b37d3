import type { Server } from 'node:http'
import type { Socket } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Timeouts } from '../../contract/limits.ts'
import { breakOff, firstByteMs } from './client-socket.ts'

/**
 * When the grace ends early: 'full' once no client has been connected for as long as it lasts,
 * 'short' as soon as no client is connected.
 */
export type Grace = 'full' | 'short'

/** The open connections of a server. */
export interface OpenSockets {
  readonly sockets: ReadonlySet<Socket>
  /** When the last of them was closed, by `performance.now()`; -Infinity if there was none. */
  readonly lastClosedAt: number
}

/**
 * Ends a server without losing a request that it has accepted. While it drains, `/readyz` fails and
 * each connection is closed after its next answer. For a short grace it keeps serving, so that
 * clients notice and go elsewhere. Then the port and idle connections are closed, and connections
 * that are still open at the deadline are cut. Returns how many were cut.
 */
export async function drain(
  server: Server,
  open: OpenSockets,
  timeouts: Timeouts,
  grace: Grace,
): Promise<number> {
  const { sockets } = open
  const ended = new AbortController()
  // Its timer keeps the process alive: connections that are not read from would not.
  const deadline = sleep(timeouts.shutdownMs, undefined, ended).catch(() => {})
  // An answer that began earlier did not announce the close, so its client may send another
  // request. It has the grace for that.
  server.keepAliveTimeout = Math.max(1, timeouts.idleGraceMs)
  server.keepAliveTimeoutBuffer = 0
  const graceEndsAt = performance.now() + timeouts.idleGraceMs
  const quietMs = grace === 'short' ? 0 : timeouts.idleGraceMs
  while (performance.now() < graceEndsAt) {
    if (sockets.size === 0 && performance.now() - open.lastClosedAt >= quietMs) break
    await sleep(10)
  }
  const closed = new Promise<void>((resolve) => closeServer(server, sockets, resolve))
  const dropSilent = () => {
    for (const socket of findSilent(sockets)) socket.destroy()
  }
  setTimeout(dropSilent, firstByteMs).unref()
  await Promise.race([closed, deadline])
  ended.abort()
  const cut = [...sockets].filter((socket) => !socket.destroyed)
  for (const socket of cut) breakOff(socket)
  await closed
  return cut.length
}

/** Closes the port and idle connections. Those that have sent nothing yet stay open. */
function closeServer(server: Server, sockets: ReadonlySet<Socket>, onClosed: () => void): void {
  const silent = findSilent(sockets)
  // Node.js 26 takes them for idle ones and destroys them, though a request may be on its way.
  for (const socket of silent) socket.destroy = () => socket
  server.close(onClosed)
  for (const socket of silent) Reflect.deleteProperty(socket, 'destroy')
}

function findSilent(sockets: ReadonlySet<Socket>): Socket[] {
  return [...sockets].filter(({ bytesRead }) => bytesRead === 0)
}
