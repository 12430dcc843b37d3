import type { Socket } from 'node:net'
import { openSocket } from '../../support/wire.ts'

/** Many badly behaved connections. */
export interface Crowd {
  /** Resolves when the service has closed them all, with the time that this took. */
  readonly closed: Promise<number>
  /** How many are open. */
  size(): number
}

/** Opens connections, a hundred at a time, and lets each behave. They end with the test. */
export async function gather(
  url: string,
  count: number,
  behave: (socket: Socket) => void,
): Promise<Crowd> {
  const sockets = new Set<Socket>()
  const startedAt = performance.now()
  const closed = Promise.withResolvers<number>()

  function open(): Promise<void> {
    return new Promise((resolve, reject) => {
      const socket = openSocket(url)
      sockets.add(socket)
      socket.once('error', reject)
      socket.once('connect', () => {
        behave(socket)
        resolve()
      })
      socket.once('close', () => {
        sockets.delete(socket)
        if (sockets.size === 0) closed.resolve(performance.now() - startedAt)
      })
    })
  }

  for (let opened = 0; opened < count; opened += 100) {
    await Promise.all(Array.from({ length: Math.min(100, count - opened) }, open))
  }
  return { closed: closed.promise, size: () => sockets.size }
}

/** Writes a byte every second until the connection is closed. */
export function drip(socket: Socket, start: string): void {
  socket.write(start)
  socket.resume()
  const timer = setInterval(() => socket.write('a'), 1_000)
  socket.on('close', () => clearInterval(timer))
}
