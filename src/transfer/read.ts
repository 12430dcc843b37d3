import type { Format } from '../contract/formats.ts'
import { buildCsvReader } from './csv.ts'
import { type Entry, type Reader, UnreadableFile } from './entry.ts'
import { isDamagedGzip } from './gunzip.ts'
import { type LineRule, readLines } from './lines.ts'
import { buildNdjsonReader } from './ndjson.ts'

const readers: Record<Format, () => Reader> = { ndjson: buildNdjsonReader, csv: buildCsvReader }

/** Reads a file of plants, some entries at a time. */
export async function* readPlants(
  chunks: AsyncIterable<Buffer>,
  format: Format,
  rule: LineRule,
): AsyncGenerator<Entry[]> {
  const reader = readers[format]()
  let lastLine = 0
  try {
    for await (const lines of readLines(chunks, rule)) {
      lastLine = lines.at(-1)?.number ?? lastLine
      const entries: Entry[] = []
      for (const line of lines) {
        const entry = reader.read(line)
        if (entry !== undefined) entries.push(entry)
      }
      yield entries
    }
  } catch (error) {
    if (!isDamagedGzip(error)) throw error
    throw new UnreadableFile(40000, lastLine + 1, damaged, { cause: error })
  }
  const last = reader.end()
  if (last !== undefined) yield [last]
}

const damaged = 'The gzip data is damaged or incomplete.'
