import { Failure } from '../contract/errors.ts'
import { NewPlant } from '../contract/shapes.ts'
import { buildShapeReader } from '../json/shape.ts'
import { type Entry, type Reader, UnreadableFile } from './entry.ts'
import type { Line } from './lines.ts'

const readPlant = buildShapeReader(NewPlant)

/** Reads one JSON object per line, under the rules of `POST /plants`. */
export function buildNdjsonReader(): Reader {
  let isFirst = true

  function read({ number: line, text, fault }: Line): Entry | undefined {
    if (fault === undefined && text.trim() === '') return undefined
    // A file that does not begin with an object is another format: one message instead of one per
    // line.
    if (isFirst && !/^[ \t\r]*\{/.test(text)) throw new UnreadableFile(line, explain(text))
    isFirst = false
    if (fault !== undefined) return { line, text, reason: fault }
    try {
      return { line, text, plant: readPlant(text) }
    } catch (error) {
      if (error instanceof Failure) return { line, text, reason: error.message }
      throw error
    }
  }

  return { read, end: () => undefined }
}

function explain(text: string): string {
  const hint = text.trimStart().startsWith('[')
    ? "Convert a JSON array with: jq -c '.[]'"
    : 'For CSV, add --format csv.'
  return `This is not NDJSON, which has one JSON object per line. ${hint}`
}
