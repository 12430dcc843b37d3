import type { IncomingMessage, ServerResponse } from 'node:http'
import { setImmediate as nextTurn, setTimeout as sleep } from 'node:timers/promises'
import { Failure } from '../contract/errors.ts'
import { limits } from '../contract/limits.ts'
import { decodeBody, isBlank } from '../json/decode.ts'
import { overloaded } from '../store/failures.ts'
import { malformed } from './failures.ts'
import { isMediaType } from './media-type.ts'

/** Bodies that are being read hold at most this much memory, over all requests. */
const maxHeldBytes = 64 * 1024 * 1024
let heldBytes = 0

/** Reads a body in JSON of this media type as text. Its headers are judged before it is read. */
export async function readJson(
  request: IncomingMessage,
  response: ServerResponse,
  mediaType: string,
): Promise<string> {
  const { headers } = request
  const type = headers['content-type']
  if (type !== undefined && !isMediaType(type, mediaType)) throw otherType(mediaType)
  const encoding = headers['content-encoding']
  if (encoding !== undefined && encoding.toLowerCase() !== 'identity') {
    throw new Failure(41500, 'The body must be sent without a Content-Encoding.')
  }
  const isTooLarge = Number(headers['content-length']) > limits.bodyBytes
  if (isTooLarge) throw type === undefined ? otherType(mediaType) : tooLarge()
  const held = await readBytes(request, response)
  try {
    const bytes = held.bytes()
    if (bytes.length > largeBytes) await takeTurn()
    // A blank body counts as missing. Any other body needs a media type.
    if (type === undefined && !isBlank(bytes)) throw otherType(mediaType)
    return decodeBody(bytes)
  } finally {
    held.release()
  }
}

/** Reads and discards the body, so that a broken one is refused before anything is done. */
export async function discardBody(
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  if (Number(request.headers['content-length']) > limits.bodyBytes) throw tooLarge()
  const held = await readBytes(request, response)
  held.release()
}

/**
 * A large body takes tens of milliseconds to judge. They are judged one at a time, with as long a
 * pause after each as it took, so that other requests are served and connections accepted.
 */
const largeBytes = 64 * 1024
let lastTurn: Promise<void> = Promise.resolve()

function takeTurn(): Promise<void> {
  const turn = lastTurn
  lastTurn = turn.then(async () => {
    const startedAt = performance.now()
    await nextTurn()
    await sleep(performance.now() - startedAt)
  })
  return turn
}

/** Holds the bytes of a body until they are released. */
interface HeldBytes {
  /** Adds a chunk, or returns why it cannot. */
  add(chunk: Buffer): Failure | undefined
  bytes(): Buffer
  release(): void
}

function readBytes(request: IncomingMessage, response: ServerResponse): Promise<HeldBytes> {
  if (isAbsent(request)) return Promise.resolve(holdBytes())
  if (request.headers.expect !== undefined && request.httpVersion === '1.1') {
    response.writeContinue()
  }
  return new Promise((resolve, reject) => {
    const held = holdBytes()

    function fail(failure: Failure): void {
      reject(failure)
      held.release()
      // The client is still sending, and has to read the answer before it can stop.
      discardRest(request)
    }

    request.on('data', (chunk: Buffer) => {
      const failure = held.add(chunk)
      if (failure !== undefined) fail(failure)
    })
    request.once('end', () => resolve(held))
    request.once('error', () => fail(endedEarly()))
  })
}

/** Discards the rest of a body. Node's own way is the cheapest where it comes in tiny chunks. */
function discardRest(request: IncomingMessage & { _dump?: () => void }): void {
  request.removeAllListeners('data')
  request._dump?.()
}

/** Node emits no `end` when there is no body. */
function isAbsent({ headers }: IncomingMessage): boolean {
  return headers['transfer-encoding'] === undefined && !Number(headers['content-length'])
}

const nothing: Buffer = Buffer.alloc(0)

/**
 * Holds the bytes of one body. The first chunk, which is nearly always the last, is kept as it is.
 * Further ones are copied into one buffer that doubles: a buffer for each chunk would hold 200
 * times the size of a body that comes byte by byte.
 */
function holdBytes(): HeldBytes {
  let buffer = nothing
  let length = 0
  let chunks = 0
  let counted = 0

  function count(bytes: number): void {
    heldBytes += bytes
    counted += bytes
  }

  return {
    add(chunk) {
      length += chunk.length
      chunks++
      if (length > limits.bodyBytes) return tooLarge()
      if (chunks > limits.bodyChunks + length / limits.bodyChunkBytes) return tooManyChunks()
      if (chunks === 1) {
        buffer = chunk
        return undefined
      }
      if (chunks === 2 || length > buffer.length) {
        const grown = Buffer.allocUnsafe(Math.min(2 * length, limits.bodyBytes))
        count(grown.length - (chunks === 2 ? 0 : buffer.length))
        buffer.copy(grown, 0, 0, length - chunk.length)
        buffer = grown
        if (heldBytes > maxHeldBytes) return overloaded()
      }
      chunk.copy(buffer, length - chunk.length)
      return undefined
    },
    bytes: () => (chunks <= 1 ? buffer : buffer.subarray(0, length)),
    release() {
      count(-counted)
      buffer = nothing
    },
  }
}

function otherType(mediaType: string): Failure {
  return new Failure(41500, `The header Content-Type must be "${mediaType}", in UTF-8.`)
}

function tooLarge(): Failure {
  return new Failure(41300, `The body must have at most ${limits.bodyBytes} bytes.`)
}

/** Closes the connection: each of these chunks costs as much as a hundred bytes in a large one. */
function tooManyChunks(): Failure {
  return new Failure(
    41300,
    `A body in more than ${limits.bodyChunks} chunks must have ${limits.bodyChunkBytes} bytes in each on average.`,
    { headers: { Connection: 'close' } },
  )
}

function endedEarly(): Failure {
  return malformed('The connection ended before the body did.')
}
