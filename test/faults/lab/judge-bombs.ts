/** Judges every bomb. With a small heap, this program ends well only if none takes much memory. */
import assert from 'node:assert/strict'
import { Failure } from '../../../src/contract/errors.ts'
import { NewPlant } from '../../../src/contract/shapes.ts'
import { decodeBody } from '../../../src/http/body.ts'
import { buildShapeReader } from '../../../src/json/shape.ts'
import { bombs } from './bombs.ts'

const readPlant = buildShapeReader(NewPlant)

for (const { title, toBody, answer } of bombs) assert.equal(judge(toBody()), answer, title)

process.stdout.write(`${bombs.length} bombs\n`)

function judge(bytes: Buffer): number {
  try {
    readPlant(decodeBody(bytes))
    return 200
  } catch (error) {
    if (error instanceof Failure) return error.number
    throw error
  }
}
