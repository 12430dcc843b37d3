import { once } from 'node:events'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { createGzip } from 'node:zlib'
import { Failure } from '../contract/errors.ts'
import { formats } from '../contract/formats.ts'
import type { Timeouts } from '../contract/limits.ts'
import { type ExportQuery, writePlants } from '../transfer/export.ts'
import { inTurns } from '../transfer/turns.ts'
import { type BodyStream, joinFields, recordAnswer } from './answer.ts'
import type { App } from './app.ts'
import { breakOff } from './node/client-socket.ts'
import { takesGzip } from './read-request.ts'

/** How often the token of an export is checked. */
const tokenCheckMs = 50

/**
 * Opens an export: every plant that the query finds, as of this moment. It is sent piece by piece:
 * as fast as the client reads, within the time limit, and only while its token is valid.
 */
export async function openExport(
  { store, timeouts }: App,
  tokenId: string,
  query: ExportQuery,
): Promise<BodyStream> {
  const snapshot = await store.openSnapshot(tokenId)

  return async (exchange, headers, verifyToken) => {
    const { request, response } = exchange
    const writtenBefore = request.socket.bytesWritten
    // The answer to HEAD has no body, so none is written.
    const pieces = request.method === 'HEAD' ? [] : inTurns(writePlants(snapshot, query))
    const source = Readable.from(pieces, { objectMode: false })
    const end = (reason: Error) => source.destroy(reason)
    const timer = setTimeout(end, timeouts.exportMs, tooSlow(timeouts))
    // By a timer, not with each piece: a client that does not read takes no more pieces.
    const watch = setInterval(() => Promise.try(verifyToken).catch(end), tokenCheckMs)
    source.once('close', () => {
      clearTimeout(timer)
      clearInterval(watch)
      snapshot.close().catch(() => {})
    })
    try {
      // A failure before the first piece still gets a status of its own.
      await once(source, 'readable')
      if (!response.destroyed) {
        const isGzip = takesGzip(request.headers['accept-encoding'])
        const { contentType } = formats[query.format]
        const encoding = isGzip && { 'Content-Encoding': 'gzip' }
        const own = { ...headers, 'Content-Type': contentType, ...encoding }
        response.writeHead(200, joinFields(exchange, own))
        // Comes before the pipeline, which would close the connection as after a whole answer.
        source.once('error', () => breakOff(request.socket))
        await pipeline([source, ...(isGzip ? [createGzip()] : []), response])
      }
    } catch (error) {
      // A client that leaves early is not a failure.
      const { code } = error as NodeJS.ErrnoException
      if (code !== 'ERR_STREAM_PREMATURE_CLOSE') throw error
    } finally {
      source.destroy()
    }
    recordAnswer(exchange, 200, request.socket.bytesWritten - writtenBefore)
  }
}

function tooSlow({ exportMs }: Timeouts): Failure {
  return new Failure(40800, `The answer was not read within ${exportMs / 1000} s.`)
}
