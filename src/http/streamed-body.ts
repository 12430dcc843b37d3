import { once } from 'node:events'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { createGzip } from 'node:zlib'
import type { Timeouts } from '../contract/limits.ts'
import { type Exchange, type Headers, joinFields } from './exchange.ts'
import { takesGzip } from './negotiation.ts'

/** A body that is too large to hold: its text in pieces. */
export interface StreamedBody {
  readonly contentType: string
  /** Whether it is worth to compress it where the client takes that. */
  readonly isCompressible: boolean
  readonly pieces: AsyncIterable<string>
  /** Lets go of what the pieces come from, whether they were read or not. */
  close(): Promise<void>
}

export function isStreamed(body: object): body is StreamedBody {
  return 'pieces' in body
}

/** An answer whose body comes in pieces. */
interface PiecewiseAnswer {
  readonly status: number
  readonly headers: Headers
  readonly body: StreamedBody
}

/** Sends a body in pieces, as fast as the client takes them, and for no longer than the limit. */
export async function sendStreamed(
  exchange: Exchange,
  { status, headers, body }: PiecewiseAnswer,
  timeouts: Timeouts,
): Promise<void> {
  const { request, response } = exchange
  // Nobody reads the body of an answer to HEAD: it is not written.
  const source = Readable.from(request.method === 'HEAD' ? [] : body.pieces, { objectMode: false })
  const timer = setTimeout(() => source.destroy(new Error('too slow')), timeouts.exportMs)
  source.once('close', () => {
    clearTimeout(timer)
    body.close().catch(() => {})
  })
  try {
    // What fails before the first piece is there can still be answered as a failure.
    await once(source, 'readable')
    if (response.destroyed) return
    const isGzip = body.isCompressible && takesGzip(request.headers['accept-encoding'])
    const encoding = isGzip ? { 'Content-Encoding': 'gzip' } : {}
    const own = { ...headers, 'Content-Type': body.contentType, ...encoding }
    response.writeHead(status, joinFields(exchange, own))
    await pipeline([source, ...(isGzip ? [createGzip()] : []), response])
  } catch (error) {
    // That the client did not want the rest is no failure.
    const { code } = error as NodeJS.ErrnoException
    if (code !== 'ERR_STREAM_PREMATURE_CLOSE') throw error
  } finally {
    source.destroy()
  }
}
