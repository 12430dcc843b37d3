import type { Server } from 'node:http'
import type { Socket } from 'node:net'
import { setImmediate as nextTurn, setTimeout as sleep } from 'node:timers/promises'
import { breakOff } from './break-off.ts'

/** How long a new connection may be silent before it counts as idle. Node allows no time at all. */
const firstByteMs = 500
/** The port closes after this many checks in a row without a new connection, and this far apart. */
const quietChecks = 3
const checkMs = 10
/** How long a stream of new connections may keep the port open. */
const maxClosingMs = 500

/** Follows the connections of a server, so that it can shut down without losing a request. */
export function trackConnections(server: Server) {
  const openedAt = new Map<Socket, number>()
  server.on('connection', (socket) => {
    if (openedAt.has(socket)) return
    openedAt.set(socket, performance.now())
    socket.once('close', () => openedAt.delete(socket))
  })
  const findSilent = () => [...openedAt].filter(([socket]) => socket.bytesRead === 0)

  /**
   * Closes the port and idle connections. The system would reset connections that wait to be
   * accepted, so they are accepted first, one with each turn of the event loop, and served after
   * the port is closed. Resolves when the port is closed; `closed` when every connection is.
   */
  async function closePort(): Promise<{ closed: Promise<void> }> {
    const accepted: Socket[] = []
    const listeners = server.rawListeners('connection') as ((socket: Socket) => void)[]
    server.removeAllListeners('connection')
    server.on('connection', (socket) => {
      // An old connection comes again after a request for an upgrade.
      if (openedAt.has(socket)) for (const listener of listeners) listener.call(server, socket)
      else accepted.push(socket)
      // Node has no listener for errors on it yet, and a reset would end the process.
      socket.on('error', () => socket.destroy())
    })
    const startedAt = performance.now()
    const isNew = ([, since]: [Socket, number]) => performance.now() - since < firstByteMs
    for (let quiet = 0; quiet < quietChecks; quiet++) {
      const before = accepted.length
      await sleep(checkMs)
      // One more turn after a commit, during which nothing is accepted or read.
      await nextTurn()
      if (performance.now() - startedAt > maxClosingMs) break
      if (accepted.length > before || findSilent().some(isNew)) quiet = -1
    }
    const closed = new Promise<void>((resolve) => server.close(() => resolve()))
    server.removeAllListeners('connection')
    for (const listener of listeners) server.on('connection', listener)
    for (const socket of accepted) if (!socket.destroyed) server.emit('connection', socket)
    void sleep(firstByteMs, undefined, { ref: false }).then(() => cut(findSilent()))
    return { closed }
  }

  /** Cuts these connections, or all of them, and returns how many. */
  function cut(connections: readonly [Socket, number][] = [...openedAt]): number {
    const open = connections.filter(([socket]) => !socket.destroyed)
    for (const [socket] of open) breakOff(socket)
    return open.length
  }

  return { closePort, cut, count: () => openedAt.size }
}
