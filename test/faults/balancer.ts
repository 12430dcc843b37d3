import { connect, createServer, type Socket } from 'node:net'
import { after } from 'node:test'
import { call } from '../support/wire.ts'

export interface Balancer {
  readonly url: string
  /** Puts a service into its place, or another one there. */
  use(place: number, serviceUrl: string): void
  /** Resolves when as many services say that they are ready. */
  waitForReady(count: number): Promise<void>
}

interface Backend {
  readonly url: string
  isReady: boolean
}

const checkMs = 50

/** What stands before several services: each new connection goes to one that says at `/readyz` that it is ready. */
export async function openBalancer(): Promise<Balancer> {
  const backends: Backend[] = []
  const sockets = new Set<Socket>()
  let connections = 0

  const server = createServer((client) => {
    const ready = backends.filter(({ isReady }) => isReady)
    const { port } = new URL(ready[connections++ % ready.length]?.url ?? 'http://127.0.0.1:1')
    const upstream = connect(Number(port), '127.0.0.1')
    for (const [socket, other] of [
      [client, upstream],
      [upstream, client],
    ] as const) {
      sockets.add(socket)
      socket.on('error', () => other.destroy())
      socket.on('close', () => sockets.delete(socket))
      socket.pipe(other)
    }
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))

  async function check(backend: Backend): Promise<void> {
    const answer = await call(backend.url, { path: '/readyz' }).catch(() => undefined)
    backend.isReady = answer?.status === 200
  }
  const checking = setInterval(() => Promise.all(backends.map(check)), checkMs)

  after(() => {
    clearInterval(checking)
    for (const socket of sockets) socket.destroy()
    server.close()
  })
  return {
    url: `http://127.0.0.1:${(server.address() as { port: number }).port}`,
    use(place, url) {
      backends[place] = { url, isReady: false }
    },
    async waitForReady(count) {
      while (backends.filter(({ isReady }) => isReady).length < count)
        await new Promise((resolve) => setTimeout(resolve, 5))
    },
  }
}
