import { Failure } from '../contract/errors.ts'
import type { Format } from '../contract/formats.ts'
import { NewPlant } from '../contract/shapes.ts'
import { buildShapeReader } from '../json/plant-json.ts'
import { buildLine } from '../store/lists.ts'
import { buildCsvReader } from './csv.ts'
import { isDamagedGzip } from './gunzip.ts'
import { type Entry, type Line, type Reader, readLines, UnreadableFile } from './lines.ts'

/** Builds the reader of a format. Without a delimiter, the header row of CSV shows it. */
export function buildReader(format: Format, delimiter?: string): Reader {
  return format === 'csv' ? buildCsvReader(delimiter) : ndjsonReader
}

/** All files that are being read stand in one line. */
const takeTurn = buildLine()

/** Reads a file of plants, some entries at a time, without blocking the event loop for long. */
export async function* readPlants(
  chunks: AsyncIterable<Buffer>,
  reader: Reader,
): AsyncGenerator<Entry[]> {
  let lastLine = 0
  try {
    for await (const lines of readLines(chunks)) {
      lastLine = lines.at(-1)?.number ?? lastLine
      yield lines.flatMap((line) => reader.read(line) ?? [])
      await takeTurn()
    }
  } catch (error) {
    if (!isDamagedGzip(error)) throw error
    throw new UnreadableFile(40000, lastLine + 1, damaged, { cause: error })
  }
  const last = reader.end()
  if (last !== undefined) yield [last]
}

const damaged = 'The gzip data is damaged or incomplete.'

const { id } = NewPlant.properties
const readPlant = buildShapeReader(NewPlant)
const readId = buildShapeReader({ ...NewPlant, required: ['id'], properties: { id } })

/** The white space of JSON. Other spaces make a line that is not JSON. */
const blank = /^[ \t\r]*$/

/** Reads one JSON object per line, under the rules of `POST /plants`. */
const ndjsonReader: Reader = { read, end: () => undefined, header: () => undefined }

function read({ number: line, text, fault }: Line): Entry | undefined {
  if (fault !== undefined) return { line, text, refusal: fault }
  if (!text.startsWith('{') && blank.test(text)) return undefined
  try {
    return { line, text, plant: readPlant(text) }
  } catch (error) {
    if (!(error instanceof Failure)) throw error
    const { number, message } = error
    return { line, text, id: findId(text, error), refusal: { error: number, message } }
  }
}

/** The id of an object that is not a plant, if it has one. */
function findId(text: string, { number }: Failure): bigint | undefined {
  if (number !== 40003) return undefined
  try {
    return readId(text).id
  } catch {
    return undefined
  }
}
