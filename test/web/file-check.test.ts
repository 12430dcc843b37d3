import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import { buildReader, readPlants } from '../../src/transfer/read.ts'

// Imported by its URL, because the types of a browser are not those of this program.
const { checkFile } = await import(
  new URL('../../web/browser/page/file-check.ts', import.meta.url).href
)

const cell = fc.constantFrom('1', '01', '', 'a', 'é', ' ', '""', '"a"', '"x""y"', '"a\nb"')
const oddCell = fc.constantFrom('a"b', '"a', 'b"', '"a"b')
const row = fc.array(fc.oneof({ weight: 9, arbitrary: cell }, oddCell), { maxLength: 3 })
const file = fc.record({
  start: fc.constantFrom('', '\n', ' \r\n', 'sep=;\n', '\ufeff'),
  header: fc.constantFrom(['id', 'name', 'tag'], ['name', 'id'], ['tag', 'id', '', 'name']),
  rows: fc.array(row, { maxLength: 6 }),
  delimiter: fc.constantFrom(',', ';', '\t'),
  newline: fc.constantFrom('\n', '\r\n'),
  end: fc.constantFrom('', '\n'),
})

describe('the check of a CSV file', () => {
  it('finds the plants that the service reads, and refuses the lines that it refuses', async () => {
    const property = fc.asyncProperty(file, async (parts) => {
      const { start, header, rows, delimiter, newline, end } = parts
      const lines = [header, ...rows].map((cells) => cells.join(delimiter))
      const text = start + lines.join(newline) + end
      const check = await checkFile(new File([text], 'plants.csv'))
      assert.ok('ids' in check)
      const ids: bigint[] = []
      const refused: number[] = []
      const chunks = (async function* () {
        yield Buffer.from(text)
      })()
      for await (const entries of readPlants(chunks, buildReader('csv'))) {
        for (const entry of entries) {
          if (entry.plant !== undefined) ids.push(entry.plant.id)
          else refused.push(entry.line)
        }
      }
      assert.deepEqual(check.ids, ids)
      assert.deepEqual(
        check.faults.map(({ line }: { line: number }) => line),
        refused,
      )
    })
    await fc.assert(property, { numRuns: 1_000 })
  })
})
