import { type ClientSocket, findOpenResponse } from './turns.ts'

/**
 * Cuts a connection. A client of HTTP/1.0 takes the end of the connection for that of the answer,
 * so one that has only a part of it gets a reset, which it cannot take for a whole answer.
 */
export function breakOff(socket: ClientSocket): void {
  if (socket.destroyed) return
  const open = findOpenResponse(socket)
  if (open?.headersSent && open.req.httpVersion === '1.0') socket.resetAndDestroy()
  else socket.destroy()
}
