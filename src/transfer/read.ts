import { pipeline, Readable } from 'node:stream'
import { createGunzip } from 'node:zlib'
import type { Format } from '../contract/formats.ts'
import { buildCsvReader } from './csv.ts'
import { type Entry, type Reader, UnreadableFile } from './entry.ts'
import { readLines } from './lines.ts'
import { buildNdjsonReader } from './ndjson.ts'

const readers: Record<Format, () => Reader> = { ndjson: buildNdjsonReader, csv: buildCsvReader }

/** Reads a file of plants, gzipped or not, some entries at a time. */
export async function* readPlants(
  chunks: AsyncIterable<Buffer>,
  format: Format,
): AsyncGenerator<Entry[]> {
  const reader = readers[format]()
  let lastLine = 0
  try {
    for await (const lines of readLines(decompress(chunks))) {
      lastLine = lines.at(-1)?.number ?? lastLine
      yield lines.flatMap((line) => reader.read(line) ?? [])
    }
  } catch (error) {
    throw isDamagedGzip(error) ? new UnreadableFile(lastLine + 1, damaged, { cause: error }) : error
  }
  const last = reader.end()
  if (last !== undefined) yield [last]
}

const chunkSize = 256 * 1024
const damaged = 'The gzip data is damaged or incomplete.'

/** Whether reading failed because of the gzip data, not because of the file. */
export function isDamagedGzip(error: unknown): boolean {
  return error instanceof Error && 'code' in error && String(error.code).startsWith('Z_')
}

/** Decompresses gzip, which its first bytes tell, whatever the file is called. */
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
  // The callback is empty because an error of the pipeline also reaches the reader of its last
  // stream.
  yield* isGzip ? pipeline(Readable.from(all()), createGunzip({ chunkSize }), () => {}) : all()
}
