import type { IncomingMessage, Server } from 'node:http'
import type { Socket } from 'node:net'
import { Failure } from '../../contract/errors.ts'
import { limits } from '../../contract/limits.ts'
import { afterRequests, close } from './connection.ts'

const passOnJoined = Symbol('passes on the chunks that were joined')

/** Node's own: its parser pushes each chunk of a body, and null at its end. */
type Incoming = IncomingMessage & {
  push?: (chunk: Buffer | null) => boolean
  _dumpAndCloseReadable?: () => void
  [passOnJoined]?: () => void
}

export interface BodyListener {
  onChunk(chunk: Buffer): void
  onEnd(): void
  /** The body is malformed, or its connection ended before it did. */
  onLost(failure: Failure): void
}

export function bodyEndedEarly(): Failure {
  return new Failure(40000, 'The connection ended before the body did.')
}

/** Listens for the loss of a body: its bytes are malformed or too slow, or the connection ended. */
export function onLostBody(request: IncomingMessage, onLost: (failure: Failure) => void): void {
  request.on('error', (error) => onLost(error instanceof Failure ? error : bodyEndedEarly()))
}

/** Whether the client waits for `100 Continue` before it sends the body. */
export function awaitsContinue({ headers, httpVersion }: IncomingMessage): boolean {
  return headers.expect !== undefined && httpVersion === '1.1'
}

/** Whether a request has no body. Node then emits no `end`. */
export function hasNoBody({ headers }: IncomingMessage): boolean {
  return headers['transfer-encoding'] === undefined && !Number(headers['content-length'])
}

/** Whether a body has too many small chunks: each costs as much as a hundred bytes. */
export function isTooFine(chunks: number, bytes: number): boolean {
  return chunks > limits.bodyChunks + bytes / limits.bodyChunkBytes
}

/** The failure of such a body. */
export function tooManyChunks(): Failure {
  return new Failure(
    41300,
    `A body in more than ${limits.bodyChunks} chunks must have ${limits.bodyChunkBytes} bytes in each on average.`,
    { headers: { Connection: 'close' } },
  )
}

/** While this much waits for a reader, nothing more is read from the connection. */
const maxJoinedBytes = 64 * 1024
const maxPieces = 100

/** Prepares for the body of a request that may have to wait for its turn. */
export function receiveBody(request: Incoming): void {
  if (hasNoBody(request)) return
  if (request.method === 'GET' || request.method === 'HEAD') discardRest(request)
  else if (request.headers['transfer-encoding'] !== undefined) joinChunks(request)
}

/** Joins chunks until they are read. In Node's stream, a chunk of one byte takes 400 bytes. */
function joinChunks(request: Incoming): void {
  let pieces: Buffer[] = []
  let bytes = 0
  request[passOnJoined] = () => {
    Reflect.deleteProperty(request, passOnJoined)
    Reflect.deleteProperty(request, 'push')
    if (bytes > 0) request.push?.(Buffer.concat(pieces))
  }
  request.push = (chunk) => {
    if (chunk === null) {
      beginReading(request)
      return request.push?.(null) ?? true
    }
    pieces.push(chunk)
    bytes += chunk.length
    if (pieces.length === maxPieces) pieces = [Buffer.concat(pieces)]
    return bytes < maxJoinedBytes
  }
}

/** Hands the body of a request over to its stream. */
export function beginReading(request: Incoming): void {
  request[passOnJoined]?.()
}

/** Passes on the chunks of a body, paced together with all other bodies. */
export function listenToBody(request: Incoming, { onChunk, onEnd, onLost }: BodyListener): void {
  let count = 0
  onLostBody(request, onLost)
  beginReading(request)
  const early: Buffer[] = []
  while (request.readableLength > 0) early.push(request.read())
  // Chunks are taken directly from the parser: through the stream, with its events and ticks, they
  // would take a tenth of the CPU time of a create.
  request.push = (chunk) => {
    if (chunk === null) {
      endPace(request.socket)
      request._dumpAndCloseReadable?.()
      onEnd()
      return true
    }
    onChunk(chunk)
    return mayReadOn(request.socket, chunk, ++count)
  }
  let mayGoOn = true
  for (const chunk of early) mayGoOn = request.push(chunk)
  if (request.complete) request.push(null)
  else if (!mayGoOn) request.socket.pause()
}

/** Discards the body of a request that is answered without reading it. */
export function discardUnread(request: Incoming): void {
  if (request.complete || hasNoBody(request)) return
  if (request.readableFlowing === null) discardRest(request)
}

/** Discards the rest of a body, paced like all others. Node would read it as fast as it comes. */
export function discardRest(request: Incoming): void {
  const { socket } = request
  let count = 0
  let bytes = 0
  request.removeAllListeners('data')
  request.resume()
  request.push = (chunk) => {
    if (chunk === null) {
      endPace(socket)
      // The stream must see the end, because Node closes the request after that.
      Reflect.deleteProperty(request, 'push')
      return request.push?.(null) ?? true
    }
    bytes += chunk.length
    if (!isTooFine(++count, bytes)) return mayReadOn(socket, chunk, count)
    request.push = () => false
    afterRequests(socket, () => close(socket))
    return false
  }
}

/** A chunk of this size means that more waits to be read. Most bodies are far smaller. */
const largeChunkBytes = 32 * 1024
/** A body in more chunks than this is paced, however small they are. */
const freeChunks = 16
/** How many such chunks are read in one turn of the event loop, over all connections. */
const chunksPerTurn = 8

const pace = Symbol('the pace of the bodies that this server reads')

type PacedSocket = Socket & { [pace]?: Pace }

/** The pace at which one server reads the bodies of all connections. */
interface Pace {
  /** How many such chunks this turn has read. */
  chunks: number
  /** The connections whose bodies wait for a later turn. */
  readonly paused: Set<Socket>
}

/** Lets the bodies of the connections of a server share a pace. */
export function paceBodies(server: Server): void {
  const shared: Pace = { chunks: 0, paused: new Set() }
  server.on('connection', (socket: PacedSocket) => {
    socket[pace] = shared
  })
}

function paceOf(socket: PacedSocket): Pace {
  return socket[pace] as Pace
}

/**
 * Returns whether to read on after a chunk, the `count`-th of its body. Otherwise the caller pauses
 * the connection, which is resumed in a later turn. libuv would read up to 2 MiB from each one
 * before any other request gets its turn.
 */
function mayReadOn(socket: Socket, chunk: Buffer, count: number): boolean {
  if (chunk.length < largeChunkBytes && count <= freeChunks) return true
  const shared = paceOf(socket)
  if (shared.chunks === 0) setImmediate(beginTurn, shared)
  shared.chunks++
  if (shared.chunks <= chunksPerTurn) return true
  shared.paused.add(socket)
  return false
}

/** Stops pacing a connection whose body is complete: from then on, others pause and resume it. */
function endPace(socket: Socket): void {
  paceOf(socket).paused.delete(socket)
}

function beginTurn(shared: Pace): void {
  const { paused } = shared
  const resumed = paused.values().take(chunksPerTurn).toArray()
  for (const socket of resumed) {
    paused.delete(socket)
    socket.resume()
  }
  // They count before their bytes come, so that others leave room for them.
  shared.chunks = resumed.length
  if (resumed.length > 0) setImmediate(beginTurn, shared)
}
