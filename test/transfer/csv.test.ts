import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import type { StoredPlant } from '../../src/contract/shapes.ts'
import type { Snapshot } from '../../src/store/store.ts'
import { type ExportForm, writePlants } from '../../src/transfer/export.ts'
import { buildReader, readPlants } from '../../src/transfer/read.ts'

const delimiters = [',', ';', '\t']

/** What the reader makes of a record: its plant as text, or the line that it refuses. */
type Outcome = string | number

async function read(content: Buffer, size: number, delimiter?: string): Promise<Outcome[]> {
  async function* chunks() {
    for (let start = 0; start < content.length; start += size)
      yield content.subarray(start, start + size)
  }
  const outcomes: Outcome[] = []
  for await (const entries of readPlants(chunks(), buildReader('csv', delimiter))) {
    for (const { plant, line } of entries) outcomes.push(plant ? toText(plant) : line)
  }
  return outcomes
}

function toText({ id, name, tag }: { id: bigint; name: string; tag?: string }): string {
  return JSON.stringify([String(id), name, tag])
}

/** The same, character by character over the whole text after the header row. */
function readPlainly(text: string, delimiter: string): Outcome[] {
  const lines = text.split('\n')
  const outcomes: Outcome[] = []
  while (lines.length > 0) {
    const line = 2 + text.split('\n').length - lines.length
    let record = lines.shift() as string
    // A record goes on while a quote is open, unless its first line is wrong already.
    if (parse(record, delimiter) === 'open') {
      while (countQuotes(record) % 2 === 1 && lines.length > 0) record += `\n${lines.shift()}`
    }
    const fields = parse(record.replace(/\r$/, ''), delimiter)
    if (record.replace(/\r$/, '') === '') continue
    const [id = '', name, tag] = Array.isArray(fields) ? fields : []
    const isPlant = fields.length === 3 && Array.isArray(fields) && /^(-?[1-9]\d*|0)$/.test(id)
    if (!isPlant || name === undefined) outcomes.push(line)
    else outcomes.push(toText({ id: BigInt(id), name, ...(tag !== undefined && { tag }) }))
  }
  return outcomes
}

function parse(record: string, delimiter: string): (string | undefined)[] | 'open' | 'wrong' {
  const fields: (string | undefined)[] = []
  let field: string | undefined
  let state: 'start' | 'plain' | 'quoted' | 'closed' = 'start'
  for (let at = 0; at < record.length; at++) {
    const character = record[at] as string
    if (state === 'quoted') {
      if (character !== '"') field += character
      else if (record[at + 1] === '"') field += record[at++] as string
      else state = 'closed'
    } else if (character === delimiter) {
      fields.push(field)
      // A row that has too many fields ends with its line, whatever comes after them.
      if (fields.length > 3) return fields
      field = undefined
      state = 'start'
    } else if (character === '"' && state === 'start') {
      field = ''
      state = 'quoted'
    } else if (character === '"' || state === 'closed') return 'wrong'
    else {
      field = (field ?? '') + character
      state = 'plain'
    }
  }
  if (state === 'quoted') return 'open'
  return [...fields, field]
}

function countQuotes(text: string): number {
  return text.split('"').length - 1
}

const piece = fc.constantFrom(
  ...['"', '""', ',', ';', '\t', '\n', '\r\n', '\r', ' ', '0', '-7', '12', 'ä', '🌵', '='],
)
const pieces = fc.array(piece, { maxLength: 40 })
/** Rows that are right more often than not. */
const row = fc
  .tuple(fc.nat(99).map(String), piece, piece)
  .map((fields) =>
    fields.map((field) => (/[^ä\d]/.test(field) ? `"${field.replaceAll('"', '""')}"` : field)),
  )

describe('CSV', () => {
  for (const delimiter of delimiters) {
    const name = JSON.stringify(delimiter)
    it(`with ${name} is read as a plain reader of the whole text does, in pieces of any size`, async () => {
      const body = fc
        .array(
          fc.oneof(
            row.map((fields) => `${fields.join(delimiter)}\n`),
            pieces.map((all) => all.join('')),
          ),
          { maxLength: 6 },
        )
        .map((parts) => parts.join(''))
      await fc.assert(
        fc.asyncProperty(body, fc.integer({ min: 1, max: 20 }), async (text, size) => {
          const content = Buffer.from(`${['id', 'name', 'tag'].join(delimiter)}\n${text}`)
          const expected = readPlainly(text, delimiter)
          assert.deepEqual(await read(content, size), expected)
          assert.deepEqual(await read(content, content.length, delimiter), expected)
        }),
        { numRuns: 700, seed: 36 },
      )
    })

    for (const newline of ['\n', '\r\n']) {
      const heads = [
        ['id', 'name', 'tag'],
        ['"id"', '"name"', '"tag"'],
        ['"no\nte, ; \t"', 'id', 'name', '', '', 'tag'],
      ].map((fields) => fields.join(delimiter))
      it(`with ${name} and ${JSON.stringify(newline)} has its delimiter from any header, split anywhere`, async () => {
        for (const start of [
          '',
          '\ufeff',
          `sep=${delimiter}${newline}`,
          `\ufeff"sep=;"${newline}`,
        ]) {
          for (const head of heads) {
            const empty = head.split(delimiter).length > 3 ? `x${delimiter}` : ''
            const rest = empty && `${delimiter}${delimiter}`
            const fields = ['1', '"ä,;\t"', `${rest}x`].join(delimiter)
            const content = Buffer.from(`${start}${head}${newline}${empty}${fields}${newline}`)
            for (let size = 1; size <= content.length; size++) {
              assert.deepEqual(await read(content, size), ['["1","ä,;\\t","x"]'], `${size}`)
            }
          }
        }
      })
    }
  }
})

/** A text, and the cell that a spreadsheet gets. */
const cells: [text: string, cell: string][] = [
  ['Käfer 🌵', 'Käfer 🌵'],
  ["'a'", "'a'"],
  ['a=b', 'a=b'],
  ['a - b', 'a - b'],
  ['"a"; b', '"a"; b'],
  [' a ', ' a '],
  ['', ''],
  ['=1+1', "'=1+1"],
  ['+1', "'+1"],
  ['-1', "'-1"],
  ['@SUM(1)', "'@SUM(1)"],
  ['＝1+1', "'＝1+1"],
  ['\u00a0\ufeff=1', "'\u00a0\ufeff=1"],
  ['\tx', "'\tx"],
  ['\rx', "'\rx"],
  ['"=1"', `'"=1"`],
  ['a\n=1', "a\n'=1"],
  ['a;=1', "a;'=1"],
  ['a,"@x', `a,'"@x`],
]

describe('CSV for spreadsheets', () => {
  for (const delimiter of delimiters) {
    it(`with ${JSON.stringify(delimiter)} has a mark, and an apostrophe before all that could be a formula`, async () => {
      const plants = cells.map(([name], index) => ({ id: BigInt(-index), name, tag: name }))
      const form: ExportForm = { format: 'csv', delimiter, spreadsheet: true }
      const written = await write(plants, form)
      assert.equal(written.slice(0, 12), `\ufeff${['id', 'name', 'tag'].join(delimiter)}`)
      const expected = cells.map(([, name], index) =>
        toText({ id: BigInt(-index), name, tag: name }),
      )
      assert.deepEqual(await read(Buffer.from(written), 7), expected)
    })
  }

  it('costs no more for a long text of separators and blanks', async () => {
    for (const unit of ['\n', ', ', ' "', '\t', '=', ';=']) {
      const name = unit.repeat(500_000)
      const all = await write([{ id: 1n, name }], { format: 'csv', spreadsheet: true })
      assert.ok(all.length > name.length)
    }
  })
})

async function write(plants: readonly StoredPlant[], form: ExportForm): Promise<string> {
  const snapshot = {
    async *walkPlants() {
      yield plants
    },
  } as unknown as Snapshot
  let written = ''
  const query = { ...form, after: undefined, tag: undefined, limit: undefined }
  for await (const piece of writePlants(snapshot, query)) written += piece
  return written
}
