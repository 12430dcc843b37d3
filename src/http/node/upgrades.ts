import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import { afterRequests, type ClientSocket, close } from './turns.ts'

const bytesBefore = Symbol('how many bytes were read before the parser came back')

type UpgradeSocket = ClientSocket & {
  [bytesBefore]?: number
  /** Node's own: the response that is being sent. */
  readonly _httpMessage?: ServerResponse | null
}

/**
 * Ignores requests for another protocol (RFC 9110, section 7.8): each is answered as if it had not
 * asked, and the connection is kept. Node takes its parser off the connection after such a request,
 * so requests that follow are read as from a new one, once this one is answered.
 */
export function ignoreUpgrades(server: Server): void {
  server.on('upgrade', (request: IncomingMessage, _, following: Buffer) => {
    const socket: UpgradeSocket = request.socket
    // Node has removed its own listeners. Without the first, a reset would end the process.
    const listeners = {
      error: () => socket.destroy(),
      drain: () => socket._httpMessage?.emit('drain'),
      timeout: () => server.emit('timeout', socket),
    }
    for (const [event, listener] of Object.entries(listeners)) socket.on(event, listener)
    socket.unshift(following)
    const resume = () => {
      // The answer was the last one, or no request follows.
      if (!socket.writable || socket.readableEnded) return close(socket)
      for (const [event, listener] of Object.entries(listeners)) socket.off(event, listener)
      serveAgain(server, socket)
    }
    // Node reuses parsers, and this one is still at work.
    setImmediate(afterRequests, socket, resume)
  })
}

/**
 * Tells Node that a request for another protocol is an ordinary one until it is complete: Node then
 * parses the body and makes the response as usual. Asked again after that, the request hands over
 * the bytes that follow it, which Node would discard.
 */
export function postponeUpgrade(request: IncomingMessage): boolean {
  Object.defineProperty(request, 'upgrade', { get: () => request.complete, set() {} })
  return false
}

function serveAgain(server: Server, socket: UpgradeSocket): void {
  socket[bytesBefore] = socket.bytesRead - socket.readableLength
  server.emit('connection', socket)
  socket.resume()
}

/** Whether a connection has been silent since its last answer. To Node it looks like a new one. */
export function isIdleAgain(socket: UpgradeSocket): boolean {
  return socket.bytesRead === socket[bytesBefore]
}
