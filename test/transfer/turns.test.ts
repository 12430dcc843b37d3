import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { buildReader, readPlants } from '../../src/transfer/read.ts'

/** One chunk, as a gzipped body or a large socket buffer would give it. */
async function* inOneChunk(text: string): AsyncGenerator<Buffer> {
  yield Buffer.from(text, 'latin1')
}

const hostile: [title: string, 'ndjson' | 'csv', text: string][] = [
  ['lines that are refused', 'ndjson', 'x\n'.repeat(200_000)],
  ['lines that are not UTF-8', 'ndjson', '\xff\n'.repeat(200_000)],
  ['empty lines of CSV', 'csv', `id,name\n${'\n'.repeat(1_000_000)}`],
  ['rows of CSV that are refused', 'csv', `id,name\n${'x\n'.repeat(200_000)}`],
]

describe('reading a file of plants', () => {
  for (const [title, format, text] of hostile) {
    it(`gives others a turn between ${title}`, async () => {
      let turns = 0
      const count = () => {
        turns++
        turn = setImmediate(count)
      }
      let turn = setImmediate(count)
      try {
        for await (const _ of readPlants(inOneChunk(text), buildReader(format)));
      } finally {
        clearImmediate(turn)
      }
      assert.ok(turns > 3, `${turns} turns`)
    })
  }
})
