import type { Server } from 'node:http'
import type { Timeouts } from '../../contract/limits.ts'
import { findOpen, type TrackedSocket } from './turns.ts'

/** How much longer than promised a connection is kept: a request may already be on its way. */
const marginMs = 1_000

/**
 * Drops clients that stop reading and connections that stay idle. Node's other timers answer
 * clients that do not finish a request. A connection has one timer, which any activity restarts:
 * Node's own `keepAliveTimeout` would make two new ones for each request.
 */
export function dropSilent(
  server: Server,
  { stallTimeoutMs, keepAliveTimeoutMs }: Timeouts,
): { end(socket: TrackedSocket): void } {
  const idleTimeoutMs = keepAliveTimeoutMs + marginMs
  const firstMs = Math.min(stallTimeoutMs, idleTimeoutMs)
  server.timeout = firstMs
  server.keepAliveTimeout = 0

  server.on('timeout', (socket: TrackedSocket) => {
    const isIdle = findOpen(socket) === undefined
    const restMs = (isIdle ? idleTimeoutMs : stallTimeoutMs) - firstMs
    if (socket.timeout === firstMs && restMs > 0) socket.setTimeout(restMs)
    else if (isIdle || socket.writableLength > 0) socket.destroy()
  })

  return {
    end(socket) {
      if (socket.timeout !== firstMs) socket.setTimeout(firstMs)
    },
  }
}
