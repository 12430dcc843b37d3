import { Failure } from '../contract/errors.ts'
import { NewPlant } from '../contract/shapes.ts'
import { buildShapeReader } from '../json/shape.ts'
import type { Entry, Reader } from './entry.ts'
import type { Line } from './lines.ts'

const { id } = NewPlant.properties
const readPlant = buildShapeReader(NewPlant)
const readId = buildShapeReader({ ...NewPlant, required: ['id'], properties: { id } })

/** Reads one JSON object per line, under the rules of `POST /plants`. */
export function buildNdjsonReader(): Reader {
  return { hasBlankLines: false, read, end: () => undefined, header: () => undefined }
}

function read({ number: line, text, fault }: Line): Entry | undefined {
  if (fault !== undefined) return { line, text, refusal: fault }
  if (!text.startsWith('{') && text.trim() === '') return undefined
  try {
    return { line, text, plant: readPlant(text) }
  } catch (error) {
    if (!(error instanceof Failure)) throw error
    const { number, message } = error
    return { line, text, id: findId(text, error), refusal: { error: number, message } }
  }
}

/** The id of an object that is no plant, if it has one. */
function findId(text: string, { number }: Failure): bigint | undefined {
  if (number !== 40003) return undefined
  try {
    return readId(text).id
  } catch {
    return undefined
  }
}
