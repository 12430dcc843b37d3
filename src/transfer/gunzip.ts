import { pipeline } from 'node:stream'
import { createGunzip } from 'node:zlib'

const chunkSize = 64 * 1024

/** Whether reading failed because of the gzip data, not because of the file. */
export function isDamagedGzip(error: unknown): boolean {
  return error instanceof Error && 'code' in error && String(error.code).startsWith('Z_')
}

/** Decompresses gzip, recognised by its first bytes. Anything else passes through. */
export async function* decompress(chunks: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  const iterator = chunks[Symbol.asyncIterator]()
  let start = Buffer.alloc(0)
  while (start.length < 2) {
    const next = await iterator.next()
    if (next.done) break
    start = Buffer.concat([start, next.value])
  }
  async function* all(): AsyncGenerator<Buffer> {
    yield start
    yield* { [Symbol.asyncIterator]: () => iterator }
  }
  const isGzip = start[0] === 0x1f && start[1] === 0x8b
  yield* isGzip ? gunzip(all()) : all()
}

/** Decompresses gzip. Iterating fails with the error of the data, or of its source. */
export function gunzip(chunks: AsyncIterable<Buffer>): AsyncIterable<Buffer> {
  // The consumer of the last stream gets the error, so the callback has nothing to do.
  return pipeline(chunks, createGunzip({ chunkSize }), () => {})
}
