import { type IncomingMessage, type Server, ServerResponse } from 'node:http'
import type { Duplex } from 'node:stream'
import { afterRequests, close, type TrackedSocket } from './connections.ts'

type Receive = (request: IncomingMessage, response: ServerResponse) => void

/**
 * Ignores a request for another protocol (RFC 9110, section 7.8): it is answered as if it had not
 * asked, and the connection is kept. Node takes its parser off such a connection, so requests that
 * follow are read as from a new one, when this one was answered.
 */
export function ignoreUpgrades(server: Server, receive: Receive): void {
  server.on('upgrade', (request: IncomingMessage, stream: Duplex, following: Buffer) => {
    const socket = stream as TrackedSocket
    const response = new ServerResponse(request)
    response.shouldKeepAlive = request.httpVersion === '1.1' && !asksToClose(request)
    // Node has removed its own listener; without one, a reset would end the process.
    const destroy = () => socket.destroy()
    socket.on('error', destroy)
    socket.unshift(following)

    response.once('finish', () => {
      response.detachSocket(socket)
      if (!response.shouldKeepAlive || isLast(response)) {
        close(socket)
        return
      }
      socket.off('error', destroy)
      server.emit('connection', socket)
    })

    afterRequests(socket, () => {
      if (socket.destroyed) return
      response.assignSocket(socket)
      receive(request, response)
    })
  })
}

function asksToClose({ headers }: IncomingMessage): boolean {
  return /\bclose\b/i.test(headers.connection ?? '')
}

/** Node notes here that the answer carries `Connection: close`. */
function isLast(response: ServerResponse): boolean {
  return (response as ServerResponse & { readonly _last: boolean })._last
}
