import { connect, createServer, type Socket } from 'node:net'
import { releaseAfterTest } from './release.ts'

/** A proxy before PostgreSQL that can stop a result in the middle of its rows. */
export interface RowHolder {
  /** The address of the same database through the proxy. */
  toUrl(url: string): string
  /** Holds back what follows a row with this text, on every connection, until it is cancelled. */
  holdAfter(text: string): void
  /** Lets everything pass. What is held back stays so. */
  pass(): void
  /** How many results are held back. */
  heldCount(): number
}

/** One connection of a client, and what is held back of the result under way. */
interface Link {
  readonly client: Socket
  /** The process of the server and its secret, as they are sent in a request to cancel. */
  key: Buffer | undefined
  state: 'passing' | 'held' | 'cancelled'
  held: Buffer[]
}

const tlsRequest = 80_877_103
const cancelRequest = 80_877_102
const row = 'D'
const keyData = 'K'
const complete = 'C'

/**
 * Opens a proxy on a free port of 127.0.0.1. A held result that is cancelled ends as the server
 * ends it: some of its rows, then the error 57014. It is closed when the test ends.
 */
export async function openRowHolder(host: string, port: number): Promise<RowHolder> {
  const sockets = new Set<Socket>()
  const links = new Set<Link>()
  let sought: string | undefined

  function add(socket: Socket): Socket {
    sockets.add(socket)
    socket.on('error', () => {})
    socket.once('close', () => sockets.delete(socket))
    return socket
  }

  /** Passes messages of the server on. */
  function pass(link: Link, message: Buffer): void {
    const type = String.fromCharCode(message[0] ?? 0)
    if (type === keyData) link.key = message.subarray(5)
    if (link.state === 'held') {
      link.held.push(message)
    } else if (link.state === 'cancelled') {
      if (type !== complete) return
      link.state = 'passing'
      link.client.write(cancelled)
    } else {
      link.client.write(message)
      if (type === row && sought !== undefined && message.includes(sought)) link.state = 'held'
    }
  }

  function cancel(key: Buffer): void {
    for (const link of links) {
      if (link.state !== 'held' || !link.key?.equals(key)) continue
      const { held } = link
      link.state = 'cancelled'
      link.held = []
      for (const message of held) pass(link, message)
    }
  }

  function openLink(client: Socket, startup: Buffer): void {
    const link: Link = { client, key: undefined, state: 'passing', held: [] }
    const upstream = add(connect(port, host))
    let rest: Buffer = Buffer.alloc(0)
    links.add(link)
    upstream.write(startup)
    client.pipe(upstream)
    upstream.on('data', (bytes: Buffer) => {
      rest = Buffer.concat([rest, bytes])
      while (rest.length >= 5 && rest.length > rest.readUInt32BE(1)) {
        const end = rest.readUInt32BE(1) + 1
        pass(link, rest.subarray(0, end))
        rest = rest.subarray(end)
      }
    })
    upstream.once('close', () => client.destroy())
    client.once('close', () => {
      links.delete(link)
      upstream.destroy()
    })
  }

  const server = createServer((client) => {
    add(client).once('data', function judge(message: Buffer) {
      const code = message.readInt32BE(4)
      if (code === tlsRequest) client.once('data', judge).write('N')
      else if (code !== cancelRequest) openLink(client, message)
      else {
        cancel(message.subarray(8))
        client.end()
      }
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port: ownPort } = server.address() as { port: number }
  releaseAfterTest(() => {
    server.close()
    for (const socket of sockets) socket.destroy()
  })
  return {
    toUrl: (url) => url.replace(`:${port}/`, `:${ownPort}/`),
    holdAfter(text) {
      sought = text
    },
    pass() {
      sought = undefined
    },
    heldCount: () => [...links].filter(({ state }) => state === 'held').length,
  }
}

/** The message of the server that a statement was cancelled. */
const cancelled = toMessage('E', 'SERROR\0VERROR\0C57014\0Mcanceling statement\0\0')

function toMessage(type: string, fields: string): Buffer {
  const head = Buffer.alloc(5)
  head.write(type)
  head.writeInt32BE(fields.length + 4, 1)
  return Buffer.concat([head, Buffer.from(fields)])
}
