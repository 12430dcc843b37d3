import { Failure } from '../contract/errors.ts'
import { limits, type Timeouts } from '../contract/limits.ts'
import { gunzip, isDamagedGzip } from '../transfer/gunzip.ts'
import { byteOrderMark, skipMark } from '../transfer/lines.ts'
import { isBlank, isMediaType, otherMediaType } from './body.ts'
import type { Exchange } from './exchange.ts'
import { type LongBody, openLongBody } from './long-body.ts'

/** A file that a client is sending, decompressed. */
export type FileUpload = LongBody

/** Opens the body of a request as a file of this media type. Its headers are checked first. */
export function openFileUpload(
  { request, response }: Exchange,
  mediaType: string,
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
