import type { Socket } from 'node:net'

/** Node's own: how much of a write the system has not taken yet. */
interface Handle {
  readonly writeQueueSize?: number
}

/** How many bytes of the write under way wait to be sent. Later writes do not count. */
export function countUnsent(socket: Socket): number {
  const { _handle: handle } = socket as Socket & { readonly _handle?: Handle | null }
  return handle?.writeQueueSize ?? socket.writableLength
}
