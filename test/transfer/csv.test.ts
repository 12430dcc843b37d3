import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import type { ExportForm } from '../../src/transfer/export.ts'
import { read, write } from './files.ts'

const delimiters = [',', ';', '\t']

/** What the reader makes of a record: its plant as text, or the line that it refuses. */
type Outcome = string | number

async function readCsv(content: Buffer, size: number, delimiter?: string): Promise<Outcome[]> {
  const entries = await read(content, size, 'csv', delimiter)
  return entries.map(({ plant, line }) => (plant ? toText(plant) : line))
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
    // A record continues while a quote is open, unless its first line is wrong already.
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
          assert.deepEqual(await readCsv(content, size), expected)
          assert.deepEqual(await readCsv(content, content.length, delimiter), expected)
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
        const separators = [`sep=${delimiter}${newline}`, `\ufeff"sep=;"${newline}`]
        for (const start of ['', '\ufeff', ...separators]) {
          for (const head of heads) {
            const empty = head.split(delimiter).length > 3 ? `x${delimiter}` : ''
            const rest = empty && `${delimiter}${delimiter}`
            const fields = ['1', '"ä,;\t"', `${rest}x`].join(delimiter)
            const content = Buffer.from(`${start}${head}${newline}${empty}${fields}${newline}`)
            for (let size = 1; size <= content.length; size++) {
              assert.deepEqual(await readCsv(content, size), ['["1","ä,;\\t","x"]'], `${size}`)
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
      assert.deepEqual(await readCsv(Buffer.from(written), 7), expected)
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
