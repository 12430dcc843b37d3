import { connect, createServer, type Socket } from 'node:net'
import { releaseAfterTest } from '../../support/release.ts'
import { waitUntil } from '../../support/wait.ts'
import { call } from '../../support/wire.ts'

export interface Balancer {
  readonly url: string
  /** Sets or replaces the service with this index. */
  use(index: number, serviceUrl: string): void
  /** Resolves when this many services are ready. */
  waitForReady(count: number): Promise<void>
}

interface Backend {
  readonly url: string
  isReady: boolean
}

const checkMs = 50

/** A load balancer: sends each new connection to a service that is ready by its `/readyz`. */
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

  releaseAfterTest(() => {
    clearInterval(checking)
    for (const socket of sockets) socket.destroy()
    server.close()
  })
  const countReady = () => backends.filter(({ isReady }) => isReady).length
  return {
    url: `http://127.0.0.1:${(server.address() as { port: number }).port}`,
    use(index, url) {
      backends[index] = { url, isReady: false }
    },
    waitForReady: (count) => waitUntil(() => countReady() >= count, `${count} services are ready`),
  }
}
