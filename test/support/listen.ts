import { once } from 'node:events'
import type { AddressInfo, Server, Socket } from 'node:net'
import { releaseAfterTest } from './release.ts'

/**
 * Lets a server listen on a free port, and answers its address. It is closed with the test, and so
 * are its connections.
 */
export async function listen(server: Server): Promise<string> {
  const sockets = new Set<Socket>()
  server.on('connection', (socket) => {
    sockets.add(socket)
    socket.on('close', () => sockets.delete(socket))
  })
  await once(server.listen(0, '127.0.0.1'), 'listening')
  releaseAfterTest(() => {
    server.close()
    for (const socket of sockets) socket.destroy()
  })
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}
