import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'

/**
 * Keeps requests waiting that are pipelined behind one whose answer may turn out to be the last on its connection. When it
 * does, they are never begun: they would be done, and nobody would hear of it (RFC 9112, section 9.6).
 */
export function buildTurns(mayBeLast: (request: IncomingMessage) => boolean) {
  const doubtful = new WeakMap<Socket, ServerResponse>()

  return function inTurn(
    request: IncomingMessage,
    response: ServerResponse,
    begin: () => void,
  ): void {
    const { socket } = request
    const before = doubtful.get(socket)
    if (before !== undefined && !before.destroyed) {
      before.once('close', () => inTurn(request, response, begin))
    } else if (socket.writable) {
      if (mayBeLast(request)) doubtful.set(socket, response)
      begin()
    }
  }
}
