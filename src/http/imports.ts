import type { IncomingMessage, ServerResponse } from 'node:http'
import { Readable } from 'node:stream'
import { setTimeout as sleep } from 'node:timers/promises'
import { Failure } from '../contract/errors.ts'
import type { Format } from '../contract/formats.ts'
import { limits, type Timeouts } from '../contract/limits.ts'
import type { FileBody } from '../contract/operation.ts'
import type { ConflictRule } from '../contract/parameters.ts'
import type { ImportReport } from '../contract/shapes.ts'
import type { Store } from '../store/store.ts'
import { gunzip, isDamagedGzip } from '../transfer/gunzip.ts'
import type { Put } from '../transfer/import-entries.ts'
import { byteOrderMark, skipMark, UnreadableFile } from '../transfer/lines.ts'
import { describeCounts, describeRest, type Tally } from '../transfer/tally.ts'
import type { Exchange } from './answer.ts'
import {
  awaitsContinue,
  bodyEndedEarly,
  discardRest,
  hasNoBody,
  isTooFine,
  listenToBody,
  tooManyChunks,
} from './node/bodies.ts'
import { liftTimeLimit } from './node/client-socket.ts'
import { isBlank, isMediaType, otherMediaType } from './read-request.ts'

/** The pause between two checks whether the queue of the store has room. */
const fullPauseMs = 5
/** Other requests wait while SQLite stores a batch: some milliseconds. */
const batchEntries = 128

/** The parameters of an import, and the token that asked for it. */
export interface ImportRequest {
  readonly format: Format
  readonly delimiter?: string | undefined
  readonly rule: ConflictRule
  readonly dryRun: boolean
  readonly tokenId: string
}

export type Imports = ReturnType<typeof buildImports>

/** Builds the imports of a server. */
export function buildImports(store: Store) {
  /** The running imports, and the token of each. */
  const running = new Map<FileUpload, string>()

  function requireRoom(tokenId: string): void {
    if (running.size >= limits.imports) throw tooManyImports('The service', limits.imports)
    const own = running.values().filter((id) => id === tokenId)
    if (own.toArray().length < limits.importsOfToken) return
    throw tooManyImports('This token', limits.importsOfToken)
  }

  /** Single creates are refused while the queue is full. An import can wait. */
  function whileNotFull(put: Put, signal: AbortSignal): Put {
    return async (plants) => {
      while (store.isFull() && !signal.aborted) await sleep(fullPauseMs)
      signal.throwIfAborted()
      return put(plants)
    }
  }

  /** Imports a file. Its code is loaded with the first one. */
  async function importFile(upload: FileUpload, request: ImportRequest): Promise<ImportReport> {
    const { format, delimiter, rule, dryRun, tokenId } = request
    const { chunks, signal } = upload
    const { importEntries, openDryRun, putInto } = await import('../transfer/import-entries.ts')
    const { buildReader, readPlants } = await import('../transfer/read.ts')
    const reader = buildReader(format, delimiter)
    const trial = dryRun ? await openDryRun(store, rule) : undefined
    const put = trial?.put ?? whileNotFull(putInto(store, rule, tokenId), signal)
    const { header } = reader
    const job = { put, rule, signal, batchEntries, refusedLimit: limits.refusedLines, header }
    try {
      const { error, ...tally } = await importEntries(readPlants(chunks, reader), job)
      if (error === undefined) return tally.report
      throw explain(error, dryRun ? nothingStored : describeDone(tally))
    } finally {
      await trial?.close()
    }
  }

  return {
    async run(upload: FileUpload, request: ImportRequest): Promise<ImportReport> {
      requireRoom(request.tokenId)
      running.set(upload, request.tokenId)
      try {
        return await importFile(upload, request)
      } finally {
        running.delete(upload)
      }
    },

    /** Ends every import with this failure. What they have stored stays. */
    endAll(failure: Failure): void {
      for (const upload of running.keys()) upload.abort(failure)
    },
  }
}

const nothingStored = ' This was a dry run: nothing was stored.'

/** What was imported before a failure, and what was not. */
function describeDone(tally: Tally): string {
  const done = tally.report.lines === 0 ? '' : ` Imported before that: ${describeCounts(tally)}.`
  return `${done} ${describeRest(tally)}`
}

/** Adds to a failure what was done before it. */
function explain(error: unknown, done: string): unknown {
  if (error instanceof Failure) {
    const { number, shortMessage, headers, reason } = error
    return new Failure(number, shortMessage + done, { cause: error, headers, reason })
  }
  if (!(error instanceof UnreadableFile)) return error
  const reason = error.message.replace(/^line/, 'Line')
  return new Failure(error.error, reason + done, { cause: error })
}

function tooManyImports(who: string, count: number): Failure {
  const message = `${who} runs ${count} imports already. Try again when one has ended.`
  return new Failure(50300, message, { reason: 'imports' })
}

/** A file of any length that a client is sending, read as it comes. */
export interface FileUpload {
  /** Its bytes, decompressed. If the client fails, that error follows the bytes before it. */
  readonly chunks: AsyncIterable<Buffer>
  /** Aborts with a `Failure` when the body must no longer be used. */
  readonly signal: AbortSignal
  /** Drops what has come and was not taken. */
  abort(failure: Failure): void
}

/** While this much waits to be taken, nothing more is read from the connection. */
const maxHeldBytes = 64 * 1024
/** How often the token of the request is checked. */
const tokenCheckMs = 50

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
  const body = new Readable({
    highWaterMark: maxHeldBytes,
    read() {
      if (!request.complete) socket.resume()
    },
  })
  let ending: 'whole' | Failure | undefined
  let bytes = 0
  let chunks = 0

  function endAfterBytes(how: 'whole' | Failure): void {
    ending ??= how
    body.push(null)
  }

  function abort(failure: Failure): void {
    controller.abort(failure)
    body.destroy(failure)
  }

  async function* read(): AsyncGenerator<Buffer> {
    if (ending === undefined && awaitsContinue(request)) response.writeContinue()
    yield* body
    if (ending instanceof Failure) throw ending
  }

  const deadline = setTimeout(abort, timeouts.importMs, tooLong(timeouts))
  const tokenCheck = setInterval(() => Promise.try(verifyToken).catch(abort), tokenCheckMs)
  const silence: NodeJS.Timeout = setTimeout(() => {
    // While something waits to be taken, the client waits for us.
    if (body.readableLength > 0) silence.refresh()
    else endAfterBytes(tooSlow(timeouts))
  }, timeouts.requestTimeoutMs)
  body.on('error', () => {})
  if (hasNoBody(request)) endAfterBytes('whole')
  else {
    liftTimeLimit(request)
    listenToBody(request, {
      onChunk(chunk) {
        if (ending !== undefined) return true
        silence.refresh()
        bytes += chunk.length
        if (!isTooFine(++chunks, bytes)) return body.push(chunk)
        endAfterBytes(tooManyChunks())
        return true
      },
      onEnd: () => endAfterBytes('whole'),
      onLost: endAfterBytes,
    })
  }
  response.once('close', () => {
    clearTimeout(deadline)
    clearTimeout(silence)
    clearInterval(tokenCheck)
    endAfterBytes(bodyEndedEarly())
    if (request.complete) return
    // The client may still be sending, and Node's own time limit was ignored for this request.
    discardRest(request)
    const cut = () => request.complete || socket.destroy()
    setTimeout(cut, timeouts.requestTimeoutMs).unref()
  })
  return { chunks: read(), signal: controller.signal, abort }
}

function tooSlow({ requestTimeoutMs }: Timeouts): Failure {
  return new Failure(40800, `The client sent nothing for ${requestTimeoutMs / 1000} s.`)
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

/** Joins the first chunks, so that one of them has all of a byte order mark. */
async function* joinStart(chunks: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  let start = Buffer.alloc(0)
  const isWhole = () => start.length >= byteOrderMark.length
  for await (const chunk of chunks) {
    if (isWhole()) yield chunk
    else {
      start = Buffer.concat([start, chunk])
      if (isWhole()) yield start
    }
  }
  if (!isWhole()) yield start
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
