import { connect, createServer, type Server, type Socket } from 'node:net'
import { Transform } from 'node:stream'
import { releaseAfterTest } from './release.ts'

/**
 * A proxy on a free port of 127.0.0.1, between a service and its database, that can be cut like a
 * cable. It is cut for good when the test ends. It may refuse connections of PostgreSQL that send
 * a text, as PgBouncer refuses those that set `search_path`.
 */
export async function openProxy(host: string, port: number, refused?: string) {
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
      client.pipe(filterRequests(client)).pipe(upstream)
      upstream.pipe(client)
    })
    return new Promise((resolve) => created.listen(at, '127.0.0.1', () => resolve(created)))
  }

  function filterRequests(client: Socket): Transform {
    return new Transform({
      transform(bytes: Buffer, _, pass) {
        if (refused === undefined || !bytes.includes(refused)) pass(null, bytes)
        else client.end(refusal)
      },
    })
  }

  /** Cuts every connection and accepts no new one. */
  async function cut(): Promise<void> {
    const closed = new Promise((resolve) => server.close(resolve))
    for (const socket of sockets) socket.destroy()
    await closed
  }

  /** Passes nothing more through the newest connection, which stays open. */
  function stallNewest(): void {
    for (const socket of [...sockets].slice(-2)) socket.unpipe().pause()
  }

  /** Accepts connections again. */
  async function restore(): Promise<void> {
    piecesLeft = Number.POSITIVE_INFINITY
    server = await listen(ownPort)
  }

  releaseAfterTest(cut)
  return {
    port: ownPort,
    /** The same address through the proxy. */
    toUrl: (url: string) => url.replace(`:${port}/`, `:${ownPort}/`),
    cut,
    /** Cuts every connection when this many more pieces of data have come from the server. */
    cutAfter(pieces: number): void {
      piecesLeft = pieces
    },
    /** How many bytes have come from the server. */
    receivedBytes: () => receivedBytes,
    stallNewest,
    restore,
  }
}

/** The answer of PostgreSQL's protocol that refuses a connection. */
const fields = Buffer.from('SFATAL\0VFATAL\0C08P01\0Munsupported startup parameter\0\0')
const refusal = Buffer.concat([Buffer.from('E\0\0\0'), Buffer.of(fields.length + 4), fields])
