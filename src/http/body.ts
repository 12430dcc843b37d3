import { isUtf8 } from 'node:buffer'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { setImmediate as nextTurn, setTimeout as sleep } from 'node:timers/promises'
import { Failure, overloaded } from '../contract/errors.ts'
import { limits } from '../contract/limits.ts'
import {
  awaitsContinue,
  discardRest,
  hasNoBody,
  isTooFine,
  listenToBody,
  tooManyChunks,
} from './node/incoming-body.ts'
import { toTokenKey } from './node/sending.ts'
import { buildTokenTurns, type TokenTurns } from './token-turns.ts'

/** Bodies that are being read hold at most this much memory: over all requests, and of a token. */
const maxHeldBytes = 64 * 1024 * 1024
const maxHeldOfToken = maxHeldBytes / 2

/** The bodies that one service is reading. */
export interface Bodies {
  heldBytes: number
  readonly heldByToken: Map<string, number>
  /** Lets one large body of each token wait to be judged. */
  readonly inTurn: TokenTurns
  lastJudged: Promise<void>
}

export function buildBodies(): Bodies {
  return {
    heldBytes: 0,
    heldByToken: new Map(),
    inTurn: buildTokenTurns({ atOnce: 1 }),
    lastJudged: Promise.resolve(),
  }
}

/** Reads a body in JSON of this media type as text. Its headers are checked before it is read. */
export function readJson(
  bodies: Bodies,
  request: IncomingMessage,
  response: ServerResponse,
  mediaType: string,
): Promise<string> {
  const { headers } = request
  const type = headers['content-type']
  if (type !== undefined && !isMediaType(type, mediaType)) throw otherMediaType(mediaType)
  const encoding = headers['content-encoding']
  if (encoding !== undefined && encoding.toLowerCase() !== 'identity') {
    throw new Failure(41500, 'The body must be sent without a Content-Encoding.')
  }
  const isTooLarge = Number(headers['content-length']) > limits.bodyBytes
  if (isTooLarge) throw type === undefined ? otherMediaType(mediaType) : tooLarge()
  return readBody(bodies, request, response, (bytes) => {
    // A blank body counts as missing. Any other body needs a media type.
    if (type === undefined && !isBlank(bytes)) throw otherMediaType(mediaType)
    return decodeBody(bytes)
  })
}

/** Reads and discards the body, so that a broken one is refused before anything is done. */
export async function discardBody(
  bodies: Bodies,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  if (Number(request.headers['content-length']) > limits.bodyBytes) throw tooLarge()
  await readBody(bodies, request, response, () => undefined)
}

const tokenPattern = "[\\w!#$%&'*+.^`|~-]+"
/** A semicolon and the parameter after it, if there is one. */
const parameterPattern = new RegExp(
  `[ \\t]*;[ \\t]*(?:(${tokenPattern})=(?:(${tokenPattern})|"((?:[^"\\\\]|\\\\.)*)"))?`,
  'gy',
)

/** Whether a `Content-Type` is this media type in UTF-8. Other parameters are ignored, up to 32. */
export function isMediaType(contentType: string, mediaType: string): boolean {
  if (contentType === mediaType) return true
  const start = contentType.search(/[^ \t]/)
  let end = start + mediaType.length
  if (contentType.slice(start, end).toLowerCase() !== mediaType) return false
  const charsets: string[] = []
  let count = 0
  parameterPattern.lastIndex = end
  for (const [text, name = '', plain, quoted = ''] of contentType.matchAll(parameterPattern)) {
    if (++count > limits.mediaTypeParameters) return false
    if (name.toLowerCase() === 'charset') charsets.push((plain ?? quoted).toLowerCase())
    end += text.length
  }
  const isWhole = /^[ \t]*$/.test(contentType.slice(end))
  return isWhole && charsets.length <= 1 && charsets.every((charset) => charset === 'utf-8')
}

/** The failure of a body that is not declared to have this media type. */
export function otherMediaType(mediaType: string): Failure {
  return new Failure(41500, `The header Content-Type must be "${mediaType}", in UTF-8.`)
}

const whitespace = new Set(Buffer.from(' \t\r\n'))

/** Whether a body holds nothing but white space. */
export function isBlank(bytes: Buffer): boolean {
  for (let at = 0; at < bytes.length; at++) {
    if (!whitespace.has(bytes[at] as number)) return false
  }
  return true
}

/** The text of a body. */
export function decodeBody(bytes: Buffer): string {
  if (isBlank(bytes)) throw new Failure(40002, 'The body is missing: send a JSON object.')
  if (!isUtf8(bytes)) throw new Failure(40001, 'Invalid JSON: the body is not UTF-8.')
  return bytes.toString('utf8')
}

/**
 * A large body takes tens of milliseconds to judge. They are judged one at a time, each followed by
 * a pause of twice the time that it took, in which other requests and connections are served. One
 * of each token waits for that, and the others of that token wait for it.
 */
const largeBytes = 64 * 1024

/** Resolves when no large body is being judged. The caller then judges its own at once. */
function waitToJudge(bodies: Bodies): Promise<void> {
  const mayJudge = bodies.lastJudged
  bodies.lastJudged = mayJudge.then(async () => {
    const startedAt = performance.now()
    await nextTurn()
    await sleep(2 * (performance.now() - startedAt))
  })
  return mayJudge
}

/** Reads a body, and resolves with what `judge` makes of its bytes. */
function readBody<Value>(
  bodies: Bodies,
  request: IncomingMessage,
  response: ServerResponse,
  judge: (bytes: Buffer) => Value,
): Promise<Value> {
  if (awaitsContinue(request) && !hasNoBody(request)) response.writeContinue()
  return new Promise((resolve, reject) => {
    const { headers } = request
    const held: HeldBytes = { bodies, headers, pieces: [], length: 0, chunks: 0, counted: 0 }

    function end(): void {
      try {
        resolve(judge(toBytes(held)))
      } catch (error) {
        reject(error)
      }
      release(held)
    }

    function fail(failure: Failure): void {
      reject(failure)
      release(held)
      // The client is still sending, and stops only once it has read the answer.
      discardRest(request)
    }

    if (hasNoBody(request)) {
      end()
      return
    }
    listenToBody(request, {
      onChunk(chunk) {
        const failure = addChunk(held, chunk)
        if (failure !== undefined) fail(failure)
      },
      onEnd() {
        if (held.length <= largeBytes) end()
        else bodies.inTurn(toTokenKey(headers), () => waitToJudge(bodies)).then(end)
      },
      onLost: fail,
    })
  })
}

/** This many pieces are joined into one, because a buffer of one byte takes 400 bytes. */
const maxPieces = 100

/** The bytes of one body, whose first chunk is nearly always the last. */
interface HeldBytes {
  readonly bodies: Bodies
  readonly headers: IncomingMessage['headers']
  pieces: Buffer[]
  length: number
  chunks: number
  /** How many of them count towards `bodies.heldBytes`: those after the first chunk. */
  counted: number
}

/** Adds a chunk, or returns why it cannot. */
function addChunk(held: HeldBytes, chunk: Buffer): Failure | undefined {
  held.length += chunk.length
  held.chunks++
  if (held.length > limits.bodyBytes) return tooLarge()
  if (isTooFine(held.chunks, held.length)) return tooManyChunks()
  held.pieces.push(chunk)
  if (held.chunks === 1) return undefined
  if (held.pieces.length === maxPieces) held.pieces = [Buffer.concat(held.pieces)]
  held.counted += chunk.length
  const ofToken = countHeld(held, chunk.length)
  const isFull = held.bodies.heldBytes > maxHeldBytes || ofToken > maxHeldOfToken
  return isFull ? overloaded('body_memory') : undefined
}

/** Adds to the bytes that are held. Returns those of the token. */
function countHeld({ bodies, headers }: HeldBytes, bytes: number): number {
  const token = toTokenKey(headers)
  bodies.heldBytes += bytes
  const ofToken = (bodies.heldByToken.get(token) ?? 0) + bytes
  if (ofToken > 0) bodies.heldByToken.set(token, ofToken)
  else bodies.heldByToken.delete(token)
  return ofToken
}

function toBytes({ pieces }: HeldBytes): Buffer {
  return pieces.length === 1 ? (pieces[0] as Buffer) : Buffer.concat(pieces)
}

function release(held: HeldBytes): void {
  if (held.counted > 0) countHeld(held, -held.counted)
  held.counted = 0
  held.pieces = []
}

function tooLarge(): Failure {
  return new Failure(41300, `The body must have at most ${limits.bodyBytes} bytes.`)
}
