/**
 * Judges every bomb, then reads plants out of long texts and keeps them. With a small heap, this
 * program ends well only if no bomb takes much memory, and if no plant holds on to its text.
 */
import assert from 'node:assert/strict'
import { Failure } from '../../../src/contract/errors.ts'
import { NewPlant } from '../../../src/contract/shapes.ts'
import { decodeBody } from '../../../src/http/body.ts'
import { buildShapeReader } from '../../../src/json/shape.ts'
import { bombs } from './bombs.ts'

const readPlant = buildShapeReader(NewPlant)

for (const { title, toBody, answer } of bombs) assert.equal(judge(toBody()), answer, title)

const kept = Array.from({ length: 200 }, (_, id) => {
  const ignored = String.fromCharCode(97 + (id % 26)).repeat(500_000)
  return readPlant(`{"id":${id},"name":"The name of plant ${id}","ignored":"${ignored}"}`)
})
process.stdout.write(`${bombs.length} bombs, ${kept.length} plants\n`)

function judge(bytes: Buffer): number {
  try {
    readPlant(decodeBody(bytes))
    return 200
  } catch (error) {
    if (error instanceof Failure) return error.number
    throw error
  }
}
