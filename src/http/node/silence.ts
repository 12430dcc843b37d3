import type { Server, ServerResponse } from 'node:http'
import type { Timeouts } from '../../contract/limits.ts'
import { breakOff } from './break-off.ts'
import { type ClientSocket, findOpenResponse } from './turns.ts'

/** How much longer than promised a connection is kept: a request may already be on its way. */
const marginMs = 1_000

/** Node's own: the time that a response announces if it keeps the connection. */
type KeepingResponse = ServerResponse & { _keepAliveTimeout?: number }

/**
 * Drops clients that stop reading and connections that stay idle. Node's other timers answer
 * clients that do not finish a request. A connection has one timer, which any activity restarts:
 * Node's own `keepAliveTimeout` would make two new ones for each request.
 */
export function dropSilent(
  server: Server,
  { stallTimeoutMs, keepAliveTimeoutMs }: Timeouts,
): { end(socket: ClientSocket, response: KeepingResponse): void } {
  const idleTimeoutMs = keepAliveTimeoutMs + marginMs
  const firstMs = Math.min(stallTimeoutMs, idleTimeoutMs)
  server.timeout = firstMs
  server.keepAliveTimeout = 0

  server.on('timeout', (socket: ClientSocket) => {
    const isIdle = findOpenResponse(socket) === undefined
    const restMs = (isIdle ? idleTimeoutMs : stallTimeoutMs) - firstMs
    if (socket.timeout === firstMs && restMs > 0) socket.setTimeout(restMs)
    else if (isIdle || socket.writableLength > 0) breakOff(socket)
  })

  return {
    end(socket, response) {
      if (socket.timeout !== firstMs) socket.setTimeout(firstMs)
      response._keepAliveTimeout = keepAliveTimeoutMs
    },
  }
}
