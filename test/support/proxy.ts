import { connect, createServer, type Server, type Socket } from 'node:net'
import { releaseAfterTest } from './release.ts'

export interface Proxy {
  readonly port: number
  /** Cuts every connection and accepts no new one. */
  cut(): Promise<void>
  /** Cuts every connection when this many more pieces of data have come from the server. */
  cutAfter(pieces: number): void
  /** How many bytes have come from the server. */
  receivedBytes(): number
  /** Passes nothing more through the newest connection, which stays open. */
  stallNewest(): void
  /** Accepts connections again. */
  restore(): Promise<void>
}

/**
 * A proxy on a free port of 127.0.0.1, between a service and its database, that can be cut like a
 * cable. It is cut for good when the test ends.
 */
export async function openProxy(host: string, port: number): Promise<Proxy> {
  const sockets = new Set<Socket>()
  let piecesLeft = Number.POSITIVE_INFINITY
  let receivedBytes = 0
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
      upstream.on('data', (bytes: Buffer) => {
        receivedBytes += bytes.length
        if (--piecesLeft <= 0) void cut()
      })
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
    piecesLeft = Number.POSITIVE_INFINITY
    server = await listen(ownPort)
  }

  releaseAfterTest(cut)
  return {
    port: ownPort,
    cut,
    cutAfter(pieces) {
      piecesLeft = pieces
    },
    receivedBytes: () => receivedBytes,
    stallNewest,
    restore,
  }
}
