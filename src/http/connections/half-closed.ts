import type { Server, ServerResponse } from 'node:http'
import { type ClientSocket, findOpenResponse } from './turns.ts'

/** How long a read may take for a client that has ended its side. */
const maxReadMs = 1_000

/**
 * Lets clients end their side after the last request and read on (RFC 9112, 9.6). A client that
 * has left looks the same until it is sent something, so a read that takes longer is given up.
 */
export function answerHalfClosed(server: Server): void {
  Object.assign(server, { httpAllowHalfOpen: true })
  server.on('connection', (socket: ClientSocket) => {
    // An old connection comes again after a request for an upgrade.
    socket.off('end', watchThis).on('end', watchThis)
  })
}

function watchThis(this: ClientSocket): void {
  watch(this)
}

function watch(socket: ClientSocket): void {
  const open = findOpenResponse(socket)
  if (open === undefined) return
  const check = () => {
    if (findOpenResponse(socket) === open && isUnansweredRead(open)) socket.destroy()
    else watch(socket)
  }
  setTimeout(check, maxReadMs).unref()
}

function isUnansweredRead({ headersSent, req }: ServerResponse): boolean {
  return !headersSent && (req.method === 'GET' || req.method === 'HEAD')
}
