import type { Server, ServerResponse } from 'node:http'
import { type ClientSocket, findOpenResponse } from './turns.ts'

/** How long a client that has ended its side may wait for what is likely to be in vain. */
const maxWaitMs = 1_000

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
    if (findOpenResponse(socket) === open && isInVain(open)) socket.destroy()
    else watch(socket)
  }
  setTimeout(check, maxWaitMs).unref()
}

/** Whether this is a read, or has a body that broke off: with an upgrade, Node does not tell us. */
function isInVain({ headersSent, req }: ServerResponse): boolean {
  return !req.complete || (!headersSent && (req.method === 'GET' || req.method === 'HEAD'))
}
