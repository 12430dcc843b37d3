import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { buildReader, readPlants } from '../../src/transfer/read.ts'
import { lowerLimit } from '../support/limits.ts'
import { countTurns } from '../support/turns.ts'

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
      const turns = countTurns()
      for await (const _ of readPlants(inOneChunk(text), buildReader(format)));
      assert.ok(turns() > 3, `${turns()} turns`)
    })

    it(`does one piece of one file in a turn without time, of ${title}`, async (t) => {
      lowerLimit(t, 'turnMs', 0)
      const beginning = text.slice(0, 20_000)
      // Uses up what an earlier test has left of its turn.
      for await (const _ of readPlants(inOneChunk(beginning), buildReader(format)));
      const turns = countTurns()
      const files = [beginning, beginning].map(async (file) => {
        let pieces = 0
        for await (const entries of readPlants(inOneChunk(file), buildReader(format))) {
          assert.ok(entries.length <= 64, `${entries.length} lines in a piece`)
          pieces++
        }
        return pieces
      })
      const [first = 0, second = 0] = await Promise.all(files)
      // Each begins its first piece at once.
      assert.ok(first + second - 2 <= turns(), `${first + second} pieces in ${turns()} turns`)
    })
  }
})
