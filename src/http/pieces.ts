import { once } from 'node:events'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { createGzip } from 'node:zlib'
import type { Limits } from '../contract/limits.ts'
import { addField, addFields, type Exchange } from './exchange.ts'
import { takesGzip } from './negotiation.ts'

/** A body that is too large to hold: its text in pieces. */
export interface Pieces {
  readonly contentType: string
  /** Whether it is worth to compress it where the client takes that. */
  readonly isCompressible: boolean
  readonly pieces: AsyncIterable<string>
  /** Lets go of what the pieces come from, whether they were read or not. */
  close(): Promise<void>
}

export function isPieces(body: object): body is Pieces {
  return 'pieces' in body
}

/** An answer whose body comes in pieces. */
interface PiecewiseAnswer {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  readonly body: Pieces
}

/** Sends a body in pieces, as fast as the client takes them, and for no longer than the limit. */
export async function sendPieces(
  exchange: Exchange,
  { status, headers, body }: PiecewiseAnswer,
  limits: Limits,
): Promise<void> {
  const { request, response, fields } = exchange
  // Nobody reads the body of an answer to HEAD: it is not written.
  const source = Readable.from(request.method === 'HEAD' ? [] : body.pieces, { objectMode: false })
  const timer = setTimeout(() => source.destroy(new Error('too slow')), limits.exportMs)
  source.once('close', () => {
    clearTimeout(timer)
    void body.close()
  })
  // What fails before the first piece is there can still be answered as a failure.
  await once(source, 'readable')
  addFields(exchange, { ...headers, 'Content-Type': body.contentType })
  const isGzip = body.isCompressible && takesGzip(request.headers['accept-encoding'])
  if (isGzip) addField(exchange, 'Content-Encoding', 'gzip')
  response.writeHead(status, fields)
  await pipeline([source, ...(isGzip ? [createGzip()] : []), response])
}
