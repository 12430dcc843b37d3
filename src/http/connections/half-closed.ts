import type { Server, ServerResponse } from 'node:http'
import { findOpen, type TrackedSocket } from './turns.ts'

/** How long a read may take for a client that has ended its side. */
const graceMs = 1_000

/**
 * Lets clients end their side after the last request and read on (RFC 9112, 9.6). A client that
 * has left looks the same until it is sent something, so a slow read for it is given up.
 */
export function answerHalfClosed(server: Server): void {
  Object.assign(server, { httpAllowHalfOpen: true })
  server.on('connection', (socket: TrackedSocket) => {
    // An old connection comes again after a request for an upgrade.
    socket.off('end', watchThis).on('end', watchThis)
  })
}

function watchThis(this: TrackedSocket): void {
  watch(this)
}

function watch(socket: TrackedSocket): void {
  const open = findOpen(socket)
  if (open === undefined) return
  const check = () => {
    if (findOpen(socket) === open && isSlowRead(open)) socket.destroy()
    else watch(socket)
  }
  setTimeout(check, graceMs).unref()
}

function isSlowRead({ headersSent, req }: ServerResponse): boolean {
  return !headersSent && (req.method === 'GET' || req.method === 'HEAD')
}
