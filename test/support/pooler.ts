import { connect, createServer, type Socket } from 'node:net'

export interface Pooler extends AsyncDisposable {
  readonly port: number
}

const tlsRequest = 80_877_103

/**
 * Passes connections on to a server, but not the setting `search_path`, as PgBouncer does: it
 * refuses those connections.
 */
export async function openPooler(host: string, port: number): Promise<Pooler> {
  const sockets = new Set<Socket>()

  function add(socket: Socket): Socket {
    sockets.add(socket)
    socket.on('error', () => {})
    socket.once('close', () => sockets.delete(socket))
    return socket
  }

  const server = createServer((client) => {
    add(client).once('data', function judge(message: Buffer) {
      if (message.readInt32BE(4) === tlsRequest) {
        client.once('data', judge).write('N')
      } else if (message.includes('search_path=')) {
        client.end(toError('08P01', 'unsupported startup parameter in options: search_path'))
      } else {
        const upstream = add(connect(port, host))
        upstream.write(message)
        client.pipe(upstream).pipe(client)
        client.once('close', () => upstream.destroy())
        upstream.once('close', () => client.destroy())
      }
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return {
    port: (server.address() as { port: number }).port,
    async [Symbol.asyncDispose]() {
      server.close()
      for (const socket of sockets) socket.destroy()
    },
  }
}

/** A message of PostgreSQL's protocol that refuses a connection. */
function toError(code: string, text: string): Buffer {
  const fields = Buffer.from(`SFATAL\0VFATAL\0C${code}\0M${text}\0\0`)
  const head = Buffer.alloc(5)
  head.write('E')
  head.writeInt32BE(fields.length + 4, 1)
  return Buffer.concat([head, fields])
}
