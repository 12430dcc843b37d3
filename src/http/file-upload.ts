import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { Failure } from '../contract/errors.ts'
import { limits, type Timeouts } from '../contract/limits.ts'
import type { FileBody } from '../contract/operation.ts'
import { gunzip, isDamagedGzip } from '../transfer/gunzip.ts'
import { byteOrderMark, skipMark } from '../transfer/lines.ts'
import type { Exchange } from './answer.ts'
import { isBlank, isMediaType, otherMediaType } from './body.ts'
import {
  awaitsContinue,
  bodyEndedEarly,
  discardRest,
  hasNoBody,
  isTooFine,
  listenToBody,
  tooManyChunks,
} from './node/bodies.ts'

/** A file of any length that a client is sending, read as it comes. */
export interface FileUpload {
  /** Its bytes, decompressed. If the client fails, the bytes before come first, then that. */
  readonly chunks: AsyncIterable<Buffer>
  /** Aborts with a `Failure` when the body must no longer be used. */
  readonly signal: AbortSignal
  /** How many bytes have come. */
  received(): number
  /** Ends the use of the body. */
  end(failure: Failure): void
}

/** While this much waits to be taken, nothing more is read from the connection. */
const maxHeldBytes = 64 * 1024
/** How often the token of the request is checked. */
const tokenCheckMs = 50

/** The connections on which such a body is being received. */
const receiving = new WeakSet<Socket>()

/** Opens the body of a request as a file of this media type. Its headers are checked first. */
export function openFileUpload(
  { request, response }: Exchange,
  { mediaType }: FileBody,
  timeouts: Timeouts,
  verifyToken: () => unknown,
): FileUpload {
  const { 'content-type': type, 'content-encoding': encoding = 'identity' } = request.headers
  if (type !== undefined && !isMediaType(type, mediaType)) throw otherMediaType(mediaType)
  const isGzip = /^(x-)?gzip$/i.test(encoding)
  if (!isGzip && encoding.toLowerCase() !== 'identity') throw otherEncoding()
  const body = openLongBody(request, response, timeouts, verifyToken)
  const chunks = isGzip ? boundedGunzip(body.chunks) : body.chunks
  return { ...body, chunks: requireContent(chunks, type === undefined ? mediaType : undefined) }
}

/**
 * Opens the body of a request. It has time limits of its own, and is released with the response:
 * the rest of it is discarded then, so that the next request can be read.
 */
function openLongBody(
  request: IncomingMessage,
  response: ServerResponse,
  timeouts: Timeouts,
  verifyToken: () => unknown,
): FileUpload {
  const { socket } = request
  const controller = new AbortController()
  const { signal } = controller
  let held: Buffer[] = []
  let heldBytes = 0
  let bytes = 0
  let ending: 'whole' | Failure | undefined = hasNoBody(request) ? 'whole' : undefined
  let wake = () => {}

  function finish(how: 'whole' | Failure): void {
    ending ??= how
    wake()
  }

  function end(failure: Failure): void {
    controller.abort(failure)
    wake()
  }

  async function* read(): AsyncGenerator<Buffer> {
    if (ending === undefined && awaitsContinue(request)) response.writeContinue()
    let bytesInTime = 0
    let leftMs = timeouts.requestTimeoutMs
    for (;;) {
      signal.throwIfAborted()
      if (heldBytes > 0) {
        const chunk = held.length === 1 ? (held[0] as Buffer) : Buffer.concat(held)
        held = []
        heldBytes = 0
        bytesInTime += chunk.length
        if (!request.complete) socket.resume()
        yield chunk
      } else if (ending === 'whole') return
      else if (ending !== undefined) throw ending
      else {
        if (bytesInTime >= limits.importBytesInTime) {
          bytesInTime = 0
          leftMs = timeouts.requestTimeoutMs
        }
        const beganAt = performance.now()
        const timer = setTimeout(finish, leftMs, tooSlow(timeouts))
        await new Promise<void>((resolve) => {
          wake = resolve
        })
        clearTimeout(timer)
        leftMs -= performance.now() - beganAt
      }
    }
  }

  const deadline = setTimeout(end, timeouts.importMs, tooLong(timeouts))
  const watch = setInterval(() => Promise.try(verifyToken).catch(end), tokenCheckMs)
  if (ending === undefined) {
    let count = 0
    receiving.add(socket)
    listenToBody(request, {
      onChunk(chunk) {
        if (ending !== undefined) return true
        bytes += chunk.length
        if (isTooFine(++count, bytes)) finish(tooManyChunks())
        else {
          held.push(chunk)
          heldBytes += chunk.length
          wake()
        }
        return heldBytes < maxHeldBytes
      },
      onEnd() {
        receiving.delete(socket)
        finish('whole')
      },
      onLost: finish,
    })
  }
  response.once('close', () => {
    clearTimeout(deadline)
    clearInterval(watch)
    finish(bodyEndedEarly())
    if (request.complete) return
    // The client may still be sending, and Node's own time limit was ignored for this request.
    discardRest(request)
    const cut = setTimeout(() => socket.destroy(), timeouts.requestTimeoutMs)
    const forget = () => {
      clearTimeout(cut)
      receiving.delete(socket)
      socket.off('close', forget)
    }
    request.once('close', forget)
    // Node does not close a discarded request with its connection.
    socket.once('close', forget)
  })
  return { chunks: read(), signal, received: () => bytes, end }
}

/** Whether a body with time limits of its own is being received. */
export function hasLongBody(socket: Socket): boolean {
  return receiving.has(socket)
}

function tooSlow({ requestTimeoutMs }: Timeouts): Failure {
  return new Failure(
    40800,
    `The client must send ${limits.importBytesInTime} bytes, or the rest, within ${requestTimeoutMs / 1000} s.`,
  )
}

function tooLong({ importMs }: Timeouts): Failure {
  return new Failure(40800, `The import must end within ${importMs / 1000} s.`)
}

/** Refuses a blank body, and one that is not blank but has no media type. */
async function* requireContent(
  chunks: AsyncIterable<Buffer>,
  missingType: string | undefined,
): AsyncGenerator<Buffer> {
  let hasContent = false
  let isFirst = true
  for await (const chunk of joinStart(chunks)) {
    hasContent ||= !isBlank(isFirst ? skipMark(chunk) : chunk)
    isFirst = false
    if (hasContent && missingType !== undefined) throw otherMediaType(missingType)
    yield chunk
  }
  if (!hasContent) throw new Failure(40002, 'The body is missing or blank.')
}

/** Joins the first chunks, so that one of them has the whole byte order mark, if there is one. */
async function* joinStart(chunks: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  let start = Buffer.alloc(0)
  let isJoined = false
  for await (const chunk of chunks) {
    if (isJoined) yield chunk
    else {
      start = Buffer.concat([start, chunk])
      isJoined = start.length >= byteOrderMark.length
      if (isJoined) yield start
    }
  }
  if (!isJoined && start.length > 0) yield start
}

async function* boundedGunzip(chunks: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  let bytesIn = 0
  let bytesOut = 0

  async function* count(): AsyncGenerator<Buffer> {
    for await (const chunk of chunks) {
      bytesIn += chunk.length
      yield chunk
    }
  }

  try {
    for await (const piece of gunzip(count())) {
      bytesOut += piece.length
      if (bytesOut > limits.gzipFreeBytes + limits.gzipFactor * bytesIn) throw tooDense()
      yield piece
    }
  } catch (error) {
    // An empty body is missing, not damaged.
    if (bytesIn > 0 || !isDamagedGzip(error)) throw error
  }
}

function otherEncoding(): Failure {
  return new Failure(41500, 'The header Content-Encoding must be "gzip", or be left out.')
}

function tooDense(): Failure {
  return new Failure(
    41300,
    `The gzipped body expands to more than ${limits.gzipFactor} times its size.`,
  )
}
