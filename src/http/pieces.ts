import { Readable } from 'node:stream'
import { createGzip } from 'node:zlib'
import type { FastifyReply } from 'fastify'
import type { Limits } from '../contract/limits.ts'
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

export function isPieces(body: unknown): body is Pieces {
  return typeof body === 'object' && body !== null && 'pieces' in body
}

/** Sends a body in pieces, as fast as the client takes them, and for no longer than the limit. */
export function sendPieces(reply: FastifyReply, body: Pieces, limits: Limits): FastifyReply {
  const { method, headers } = reply.request
  reply.type(body.contentType)
  const isGzip = body.isCompressible && takesGzip(headers['accept-encoding'])
  if (isGzip) reply.header('Content-Encoding', 'gzip')
  // Nobody reads the body of an answer to HEAD: it is not written.
  const source = Readable.from(method === 'HEAD' ? [] : body.pieces, { objectMode: false })
  const timer = setTimeout(() => source.destroy(new Error('too slow')), limits.exportMs)
  source.once('close', () => {
    clearTimeout(timer)
    void body.close()
  })
  return reply.send(isGzip && method !== 'HEAD' ? source.compose(createGzip()) : source)
}
