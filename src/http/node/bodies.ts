import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { Failure } from '../../contract/errors.ts'
import { limits } from '../../contract/limits.ts'
import { afterRequests, close, idleSecondsOf } from './client-socket.ts'
import { STATUS_CODES } from './node-http.ts'

const collected = Symbol('what has come of the body')

/** Node's own: its parser pushes each chunk of a body, and null at its end. */
type Incoming = IncomingMessage & {
  push?: (chunk: Buffer | null) => boolean
  _dumpAndCloseReadable?: () => void
  /** Undefined if there is no body, and once it has ended or is being discarded. */
  [collected]?: Collected | undefined
}

/** The bytes of a body that nobody has asked for yet. */
interface Collected {
  pieces: Buffer[]
  bytes: number
  chunks: number
}

export interface BodyListener {
  /** Returns whether to read on. If not, resume the socket of the request later. */
  onChunk(chunk: Buffer): boolean
  onEnd(): void
  /** The body is malformed, or its connection ended before it did. */
  onLost(failure: Failure): void
}

export function bodyEndedEarly(): Failure {
  return new Failure(40000, 'The connection ended before the body did.')
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

/** This many pieces are joined into one, because a buffer of one byte takes 400 bytes. */
const maxPieces = 16

/**
 * Collects the body of a request that may have to wait at the gate. Chunks are taken directly from
 * the parser: Node's stream, with its events and ticks, takes more CPU time (README). Beyond the
 * size of a body, nothing more is read until somebody listens.
 */
export function collectBody(request: Incoming): void {
  if (hasNoBody(request)) return
  const body: Collected = { pieces: [], bytes: 0, chunks: 0 }
  request[collected] = body
  request.push = (chunk) => {
    if (chunk === null) return true
    body.pieces.push(chunk)
    body.bytes += chunk.length
    body.chunks++
    if (body.pieces.length === maxPieces) body.pieces = [Buffer.concat(body.pieces)]
    return body.bytes <= limits.bodyBytes && !isTooFine(body.chunks, body.bytes)
  }
}

/**
 * Passes on the chunks of a body: those that were collected, then each as it comes. The request
 * must have a body (`hasNoBody`).
 */
export function listenToBody(request: Incoming, { onChunk, onEnd, onLost }: BodyListener): void {
  const body = request[collected] as Collected
  request.on('error', (error) => onLost(error instanceof Failure ? error : bodyEndedEarly()))
  request.push = (chunk) => {
    if (chunk !== null) return onChunk(chunk)
    request[collected] = undefined
    request._dumpAndCloseReadable?.()
    onEnd()
    return true
  }
  const { pieces, chunks, bytes } = body
  if (isTooFine(chunks, bytes)) {
    onLost(tooManyChunks())
    return
  }
  body.pieces = []
  let mayGoOn = true
  for (const piece of pieces) mayGoOn = request.push(piece)
  if (request.complete) request.push(null)
  // It was paused if this much had come, or chunks that were too small for a moment.
  else if (mayGoOn) request.socket.resume()
}

/**
 * Discards the rest of a body: many clients read the answer only once they have sent all of it. One
 * in too many chunks ends the connection, and so does one that takes longer than a request may.
 */
export function discardRest(request: Incoming): void {
  const body = request[collected]
  if (body === undefined) return
  request[collected] = undefined
  const { socket } = request
  const giveUp = () => afterRequests(socket, () => close(socket))
  let { chunks, bytes } = body
  if (isTooFine(chunks, bytes)) giveUp()
  if (request.complete) {
    request._dumpAndCloseReadable?.()
    return
  }
  request.push = (chunk) => {
    if (chunk === null) {
      // The stream must see the end, because Node closes the request after that.
      Reflect.deleteProperty(request, 'push')
      return request.push?.(null) ?? true
    }
    bytes += chunk.length
    if (isTooFine(++chunks, bytes)) {
      request.push = () => false
      giveUp()
      return false
    }
    return bytes <= freeBytes || mayDiscard(socket)
  }
  request.resume()
}

/** How much of a body is discarded at once. Most bodies that nobody reads are far smaller. */
const freeBytes = 64 * 1024
/** How many chunks are discarded in one turn of the event loop, over all connections. */
const chunksPerTurn = 8

/** The connections whose bodies are discarded in a later turn. */
const paused = new Set<Socket>()
let discarded = 0

/**
 * Whether to read on. Otherwise the connection is paused, and resumed in a later turn. libuv would
 * read 2 MiB from each connection before any other request gets its turn.
 */
function mayDiscard(socket: Socket): boolean {
  if (discarded === 0) setImmediate(resumePaused)
  if (++discarded <= chunksPerTurn) return true
  paused.add(socket)
  return false
}

function resumePaused(): void {
  const resumed = paused.values().take(chunksPerTurn).toArray()
  for (const socket of resumed) {
    paused.delete(socket)
    socket.resume()
  }
  // They count before their bytes come, so that others leave room for them.
  discarded = resumed.length
  if (discarded > 0) setImmediate(resumePaused)
}

/** Node's own: the head of an answer. */
type OwnHead = ServerResponse & { _header: string }

/**
 * Sends an answer whose body takes this many bytes. Names and values of its header fields
 * alternate. The caller has checked them.
 */
export function sendWhole(
  response: ServerResponse,
  status: number,
  fields: string[],
  body: string,
  bytes: number,
): void {
  if (isUsual(response, status, fields)) writeHead(response as OwnHead, status, fields)
  else response.writeHead(status, fields)
  // ASCII is the same in both, and Latin-1 is written faster.
  response.end(body, body.length === bytes ? 'latin1' : 'utf8')
}

/** Whether Node would add nothing but the date and `Connection: keep-alive`. */
function isUsual(
  { req: { httpVersion, headers } }: ServerResponse,
  status: number,
  fields: readonly string[],
): boolean {
  const { connection = 'keep-alive', expect } = headers
  const isKept = httpVersion === '1.1' && connection === 'keep-alive'
  return isKept && status < 300 && expect === undefined && !fields.includes('Connection')
}

/** Writes the head that Node would write, in less time (README). */
function writeHead(response: OwnHead, status: number, fields: readonly string[]): void {
  let head = `HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\n`
  for (let at = 0; at < fields.length; at += 2) head += `${fields[at]}: ${fields[at + 1]}\r\n`
  const idleSeconds = idleSecondsOf(response.req.socket)
  response.statusCode = status
  response._header = `${head}Date: ${toDate()}\r\nConnection: keep-alive\r\nKeep-Alive: timeout=${idleSeconds}\r\n\r\n`
}

let date = ''
let dateAt = 0

/** The current date as a header. It is made once a second. */
function toDate(): string {
  const second = Math.floor(Date.now() / 1000)
  if (second !== dateAt) {
    dateAt = second
    date = new Date(second * 1000).toUTCString()
  }
  return date
}
