import { connect, createServer, type Server, type Socket } from 'node:net'
import { after } from 'node:test'

export interface Proxy {
  readonly port: number
  /** Cuts every connection and takes no new one. */
  cut(): Promise<void>
  /** Lets nothing more through the connection that was made last; it stays. */
  stallNewest(): void
  /** Takes connections again. */
  restore(): Promise<void>
}

/** A proxy on a free port of 127.0.0.1, between a service and its database, that can be cut like a cable. */
export async function openProxy(host: string, port: number): Promise<Proxy> {
  const sockets = new Set<Socket>()
  let server = await listen(0)
  const { port: ownPort } = server.address() as { port: number }

  function listen(at: number): Promise<Server> {
    const created = createServer((client) => {
      const upstream = connect(port, host)
      for (const socket of [client, upstream]) {
        sockets.add(socket)
        socket.on('error', () => {})
        socket.on('close', () => {
          sockets.delete(socket)
          client.destroy()
          upstream.destroy()
        })
      }
      client.pipe(upstream).pipe(client)
    })
    return new Promise((resolve) => created.listen(at, '127.0.0.1', () => resolve(created)))
  }

  async function cut(): Promise<void> {
    const closed = new Promise((resolve) => server.close(resolve))
    for (const socket of sockets) socket.destroy()
    await closed
  }

  function stallNewest(): void {
    for (const socket of [...sockets].slice(-2)) socket.unpipe().pause()
  }

  async function restore(): Promise<void> {
    server = await listen(ownPort)
  }

  after(cut)
  return { port: ownPort, cut, stallNewest, restore }
}
