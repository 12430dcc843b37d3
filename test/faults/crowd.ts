import { connect, type Socket } from 'node:net'

/** Many connections that do nothing good. */
export interface Crowd {
  /** Resolves when the service has closed every one, with the milliseconds that the last one took. */
  readonly closed: Promise<number>
  /** How many are open. */
  size(): number
  leave(): void
}

/** Opens connections, a few at a time, and lets each of them behave. */
export async function gather(
  url: string,
  count: number,
  behave: (socket: Socket) => void,
): Promise<Crowd> {
  const { hostname, port } = new URL(url)
  const sockets = new Set<Socket>()
  const startedAt = performance.now()
  let onEmpty = (_: number) => {}
  const closed = new Promise<number>((resolve) => {
    onEmpty = resolve
  })

  function open(): Promise<void> {
    return new Promise((resolve, reject) => {
      const socket = connect(Number(port), hostname, () => {
        behave(socket)
        resolve()
      })
      sockets.add(socket)
      socket.on('error', reject)
      socket.on('close', () => {
        sockets.delete(socket)
        if (sockets.size === 0) onEmpty(performance.now() - startedAt)
      })
    })
  }

  for (let opened = 0; opened < count; opened += 100) {
    await Promise.all(Array.from({ length: Math.min(100, count - opened) }, open))
  }
  return {
    closed,
    size: () => sockets.size,
    leave() {
      for (const socket of sockets) socket.destroy()
    },
  }
}

/** Writes a byte every second, for as long as it is let. */
export function drip(socket: Socket, start: string): void {
  socket.write(start)
  socket.resume()
  const timer = setInterval(() => socket.write('a'), 1_000)
  socket.on('close', () => clearInterval(timer))
  // The service may close it while a byte is on its way.
  socket.removeAllListeners('error').on('error', () => {})
}

/** Asks again and again, as a good client does; tells how long the answers took. */
export function startProbe(ask: () => Promise<{ readonly status: number }>) {
  const times: number[] = []
  const statuses = new Set<number>()
  let isStopped = false
  const running = (async () => {
    while (!isStopped) {
      const startedAt = performance.now()
      statuses.add((await ask()).status)
      times.push(performance.now() - startedAt)
      await new Promise((resolve) => setTimeout(resolve, 20))
    }
  })()
  return {
    statuses,
    async stop(): Promise<string> {
      isStopped = true
      await running
      times.sort((a, b) => a - b)
      const at = (part: number) => (times[Math.floor(times.length * part)] ?? 0).toFixed(1)
      return `${times.length} probes, p50 ${at(0.5)} ms, p99 ${at(0.99)} ms`
    },
  }
}
