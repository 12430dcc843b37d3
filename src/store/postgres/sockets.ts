import { once } from 'node:events'
import { connect as connectTcp, type NetConnectOpts, type Socket } from 'node:net'
import { type ConnectionOptions, connect as connectTls, type TLSSocket } from 'node:tls'
import { unreachable } from '../failures.ts'
import type { Address } from './address.ts'
import { codeOf } from './failures.ts'
import { type Host, isUnixSocket, toSocketPath } from './hosts.ts'
import { timedOut } from './timeout.ts'

/** The sockets to one server. We own them, to cut them when the server hangs. */
export interface Sockets {
  /** Opens a socket on which the server waits for the first message of its protocol. */
  open(): Promise<Socket>
  /** How many are open. */
  size(): number
  /** Resolves when none is open. */
  untilEmpty(): Promise<void>
  /** Closes every socket after its last write, whatever the server still has to send. */
  close(): void
  /** Cuts every socket at once. */
  destroy(): void
}

export interface SocketsOptions extends Partial<Pick<Address, 'negotiation' | 'keepAlive'>> {
  readonly at: Host
  /** Absent: nothing is encrypted. */
  readonly tls: ConnectionOptions | undefined
  readonly timeoutMs: number
}

/** The protocol that a server agrees to when TLS comes first. */
const protocol = 'postgresql'

/** The handshake failed. The code says why. */
export class TlsFailure extends Error {
  readonly code: string
  constructor(code: string, cause?: unknown) {
    super('the server could not be reached over TLS', { cause })
    this.name = 'TlsFailure'
    this.code = code
  }
}

/** Builds an empty set of sockets. Once closed or destroyed, it opens no more. */
export function buildSockets(options: SocketsOptions): Sockets {
  const { at, tls, timeoutMs, negotiation = 'postgres', keepAlive } = options
  const sockets = new Set<Socket>()
  let isClosed = false
  let onEmpty: (() => void)[] = []

  function add<One extends Socket>(socket: One): One {
    sockets.add(socket)
    // An error closes the socket as well, and its user may not listen yet.
    socket.on('error', () => {})
    socket.once('close', () => remove(socket))
    return socket
  }

  function remove(socket: Socket): void {
    sockets.delete(socket)
    if (sockets.size > 0) return
    for (const resolve of onEmpty) resolve()
    onEmpty = []
  }

  async function open(): Promise<Socket> {
    if (isClosed) throw unreachable()
    let socket = add(connectTcp(toTarget(at)))
    const timer = setTimeout(() => socket.destroy(timedOut(timeoutMs)), timeoutMs)
    try {
      await until(socket, 'connect')
      if (keepAlive !== undefined && !isUnixSocket(at)) {
        const { idleMs, intervalMs, count } = keepAlive
        socket.setKeepAlive(true, idleMs, intervalMs, count)
      }
      if (tls !== undefined) {
        const isDirect = negotiation === 'direct'
        if (!isDirect) await requestTls(socket)
        const plain = socket
        const agreement = isDirect ? { ALPNProtocols: [protocol] } : {}
        socket = add(connectTls({ ...tls, ...agreement, socket: plain }))
        sockets.delete(plain)
        await until(socket, 'secureConnect').catch(rethrowAsTlsFailure)
        if (isDirect && (socket as TLSSocket).alpnProtocol !== protocol) {
          throw new TlsFailure('TLS_NOT_DIRECT')
        }
      }
      return socket
    } catch (error) {
      socket.destroy()
      throw error
    } finally {
      clearTimeout(timer)
    }
  }

  return {
    open,
    size: () => sockets.size,
    untilEmpty: () =>
      sockets.size === 0 ? Promise.resolve() : new Promise((resolve) => onEmpty.push(resolve)),
    close() {
      isClosed = true
      for (const socket of sockets) socket.connecting ? socket.destroy() : socket.destroySoon()
    },
    destroy() {
      isClosed = true
      for (const socket of sockets) socket.destroy()
    },
  }
}

function toTarget(at: Host): NetConnectOpts {
  if (isUnixSocket(at)) return { path: toSocketPath(at) }
  return { host: at.host, port: at.port, noDelay: true }
}

/** Asks the server for TLS, before the first message of its protocol. */
async function requestTls(socket: Socket): Promise<void> {
  socket.write(tlsRequest)
  await until(socket, 'readable')
  const answer = socket.read()?.toString('latin1')
  // Anything after the letter would be injected: the server sends no more before the handshake.
  if (answer !== 'S') throw new TlsFailure(answer === 'N' ? 'TLS_REFUSED' : 'TLS_NO_ANSWER')
}

/** A message of 8 bytes with the number that stands for TLS. */
const tlsRequest = Buffer.from([0, 0, 0, 8, 0x04, 0xd2, 0x16, 0x2f])

function rethrowAsTlsFailure(error: unknown): never {
  throw new TlsFailure(codeOf(error), error)
}

/** Resolves with the event, and rejects when the socket closes before it. */
async function until(socket: Socket, event: 'connect' | 'readable' | 'secureConnect') {
  const closed = new AbortController()
  const onClose = () => closed.abort()
  socket.once('close', onClose)
  try {
    await once(socket, event, { signal: closed.signal })
  } finally {
    socket.off('close', onClose)
  }
}
