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

/**
 * Decompresses gzip. If the data is damaged or its source fails, everything before that comes
 * first: a pipeline of streams would drop it.
 */
export async function* gunzip(chunks: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  const stream = createGunzip({ chunkSize })
  const pieces: Buffer[] = []
  let end: { readonly error?: unknown } | undefined
  let wake = () => {}
  stream.on('data', (piece: Buffer) => {
    pieces.push(piece)
    stream.pause()
    wake()
  })
  function finish(how: { readonly error?: unknown }): void {
    end ??= how
    wake()
  }
  stream.on('end', () => finish({}))
  stream.on('error', (error) => finish({ error }))
  feed().catch((error: unknown) => finish({ error }))

  async function feed(): Promise<void> {
    for await (const chunk of chunks) {
      await new Promise<void>((resolve, reject) => {
        stream.write(chunk, (error) => (error ? reject(error) : resolve()))
      })
    }
    stream.end()
  }

  try {
    for (;;) {
      const piece = pieces.shift()
      if (piece !== undefined) yield piece
      else if (end !== undefined) break
      else {
        stream.resume()
        await new Promise<void>((resolve) => {
          wake = resolve
        })
      }
    }
  } finally {
    stream.destroy()
  }
  if ('error' in end) throw end.error
}
