import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { gzipSync } from 'node:zlib'
import fc from 'fast-check'
import { type Format, formatNames } from '../../src/contract/formats.ts'
import type { StoredPlant } from '../../src/contract/shapes.ts'
import { isStorable } from '../../src/contract/values.ts'
import type { Snapshot } from '../../src/store/store.ts'
import type { Entry } from '../../src/transfer/entry.ts'
import { writePlants } from '../../src/transfer/export.ts'
import { decompress } from '../../src/transfer/gunzip.ts'
import { maxLineBytes } from '../../src/transfer/lines.ts'
import { buildReader, readPlants } from '../../src/transfer/read.ts'
import { anyCharacter } from '../support/characters.ts'

const text = fc.oneof(
  fc.string({ unit: anyCharacter }).filter(isStorable),
  fc.constantFrom(
    '',
    ' ',
    '"',
    '""',
    ',',
    '\n',
    '\r\n',
    '\r',
    'a,b',
    '"a"',
    '\ufeff',
    '=1+1',
    '🌵',
    '\u{10ffff}',
  ),
)
const plants = fc.uniqueArray(
  fc.record(
    {
      id: fc.oneof(
        fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n }),
        fc.constantFrom(-(2n ** 63n), 2n ** 63n - 1n, 0n, 2n ** 53n + 1n),
      ),
      name: text,
      tag: text,
    },
    { requiredKeys: ['id', 'name'], noNullPrototype: true },
  ),
  { selector: ({ id }) => id, maxLength: 30 },
)

describe('a file that is written', () => {
  for (const format of formatNames) {
    it(`as ${format} is read back unchanged, however its bytes are split`, async () => {
      await fc.assert(
        fc.asyncProperty(plants, fc.integer({ min: 1, max: 50 }), async (given, size) => {
          const sorted = given.toSorted((a, b) => (a.id < b.id ? -1 : 1))
          const written = await write(sorted as StoredPlant[], format)
          assert.deepEqual(
            (await read(written, format, size)).map(({ plant }) => plant),
            sorted,
          )
          const zipped = await read(gzipSync(written), format, size)
          assert.deepEqual(
            zipped.map(({ plant }) => plant),
            sorted,
          )
        }),
        { numRuns: 80, seed: 5 },
      )
    })
  }

  it('as csv tells an absent tag from an empty one, and quotes an empty name', async () => {
    const given = [
      { id: 1n, name: 'a' },
      { id: 2n, name: 'b', tag: '' },
      { id: 3n, name: '', tag: 'x,y' },
    ]
    const expected = 'id,name,tag\n1,a,\n2,b,""\n3,"","x,y"\n'
    assert.equal(await write(given, 'csv'), expected)
  })

  it('as csv has quotes around a text with a blank at its edge, which spreadsheets trim', async () => {
    const given = [
      { id: 1n, name: ' a', tag: 'b ' },
      { id: 2n, name: '\ta b\u00a0', tag: ' ' },
      { id: 3n, name: 'a b', tag: 'c' },
    ]
    const expected = 'id,name,tag\n1," a","b "\n2,"\ta b\u00a0"," "\n3,a b,c\n'
    assert.equal(await write(given, 'csv'), expected)
  })
})

/** A file, and what is expected for each entry: the id of the plant, or the line and the reason. */
const files: [
  title: string,
  Format,
  content: string | Buffer,
  expected: (bigint | [number, RegExp])[],
][] = [
  [
    'blank lines and a last line without an end',
    'ndjson',
    '\n{"id":1,"name":"a"}\r\n \n{"id":2,"name":"b"}',
    [1n, 2n],
  ],
  [
    'a line that is not JSON',
    'ndjson',
    '{"id":1,"name":"a"}\n{"id":2,\n{"id":3,"name":"c"}\n',
    [1n, [2, /JSON/], 3n],
  ],
  [
    'a line of spaces that JSON does not know',
    'ndjson',
    '{"id":1,"name":"a"}\n\u00a0\n\ufeff\n{"id":3,"name":"c"}\n',
    [1n, [2, /JSON/], [3, /JSON/], 3n],
  ],
  [
    'a number that is no int64',
    'ndjson',
    '{"id":1.5,"name":"a"}\n',
    [[1, /"id" must be an integer/]],
  ],
  ['an id in quotes', 'ndjson', '{"id":"1","name":"a"}\n', [[1, /"id" must be an integer/]]],
  ['a missing name', 'ndjson', '{"id":1}\n', [[1, /"name" is missing/]]],
  [
    'broken UTF-8',
    'ndjson',
    Buffer.from(
      '{"id":1,"name":"a"}\n{"id":2,"name":"\xff"}\n{"id":3,"name":"ü"}\n',
      'latin1',
    ).fill(0xc3, 52, 53),
    [1n, [2, /not UTF-8/], [3, /not UTF-8/]],
  ],
  [
    'a line of 10 MB',
    'ndjson',
    `{"id":1,"name":"a"}\n{"id":2,"name":"${'x'.repeat(10_000_000)}"}\n{"id":3,"name":"c"}\n`,
    [1n, [2, /longer than/], 3n],
  ],
  [
    'a byte order mark and columns in another order',
    'csv',
    '\ufefftag,id,other,name\nx,1,?,a\n,2,?,b\n',
    [1n, 2n],
  ],
  ...[',', ';', '\t'].flatMap((delimiter): typeof files => [
    [
      `as many columns as a line can hold, with ${JSON.stringify(delimiter)}`,
      'csv',
      `id,name${','.repeat(maxLineBytes - 7)}\n1,a\n`.replaceAll(',', delimiter),
      [[2, new RegExp(`2 fields, but the header has ${maxLineBytes - 5}`)]],
    ],
    [
      `too many fields, with ${JSON.stringify(delimiter)}`,
      'csv',
      `id,name\n1,a,b\n2,${','.repeat(8_000)}\n3,"a",${'"",'.repeat(2_000)}\n4,b\n`.replaceAll(
        ',',
        delimiter,
      ),
      [[2, /more fields than the header/], [3, /more fields/], [4, /more fields/], 4n],
    ],
  ]),
  [
    'the encoding of an older Excel',
    'csv',
    Buffer.from('id;name\r\n1;Käfer\r\n2;b\r\n3;"c\r\nü"\r\n4;d\r\n', 'latin1'),
    [[2, /^The line is not UTF-8\. Save the file as "CSV UTF-8/], 2n, [4, /"CSV UTF-8/], 4n],
  ],
  ['columns without names', 'csv', 'id;;name;;\n1;x;a;;\n', [1n]],
  ['CRLF and a quoted newline', 'csv', 'id,name\r\n1,"a\r\nb"\r\n2,c\r\n', [1n, 2n]],
  [
    'too few fields',
    'csv',
    'id,name,tag\n1,a\n2,b,\n',
    [[2, /2 fields, but the header has 3/], 2n],
  ],
  ['an id that a spreadsheet has rounded', 'csv', 'id,name\n9.22337E+18,a\n', [[2, /in digits/]]],
  ['a name that is absent', 'csv', 'id,name\n1,\n2,""\n', [[2, /"name" is absent/], 2n]],
  [
    'a quote within a field',
    'csv',
    'id,name\n1,5" pot\n2,"b"x\n3,c\n',
    [[2, /^Unexpected quote: put the whole field in quotes/], [3, /^Unexpected quote/], 3n],
  ],
  ['a quote that does not end', 'csv', 'id,name\n1,a\n2,"b\n3,c\n', [1n, [3, /does not end/]]],
  [
    'a quote that does not end within the bound',
    'csv',
    `id,name\n1,"${'a\n'.repeat(maxLineBytes)}2,b\n`,
    [[2, new RegExp(`does not end\\..* through line ${3 + (maxLineBytes - 4) / 2}\\.$`)]],
  ],
  [
    'a record of several lines that is as long as may be',
    'csv',
    `id,name\n1,"${'ü\n'.repeat((maxLineBytes - 4) / 3)}"\n2,b\n`,
    [1n, 2n],
  ],
  [
    'a record of several lines that is too long in bytes',
    'csv',
    `id,name\n1,"${'ü\n'.repeat((maxLineBytes - 4) / 3 + 1)}"\n2,b\n`,
    [[2, /does not end/]],
  ],
  ['a NUL character', 'csv', 'id,name\n1,a\0b\n', [[2, /NUL/]]],
  ['a byte order mark before a quoted header', 'csv', '\ufeff"id","name"\n"1","a"\n', [1n]],
  ['a byte order mark', 'ndjson', '\ufeff{"id":1,"name":"a"}\n', [1n]],
  [
    'a byte order mark on a later line',
    'ndjson',
    '{"id":1,"name":"a"}\n\ufeff{"id":2,"name":"b"}\n{"id":3,"name":"c"}\n\ufeff{"id":4}',
    [1n, [2, /JSON/], 3n, [4, /JSON/]],
  ],
  [
    'a byte order mark on a later line',
    'csv',
    'id,name\n1,a\n\ufeff2,b\n3,c\n',
    [1n, [3, /Column "id"/], 3n],
  ],
  ['lines without number', 'ndjson', `{"id":1,"name":"a"}\n${'\n'.repeat(1_000_000)}`, [1n]],
  [
    'a stray quote that another one ends: the reason names all lines between them',
    'csv',
    'id,name\n1,"a\n2,b\n3,c"\n4,"d\n5,e\n6,"f\n7,g\n',
    [1n, [5, /^Unexpected quote.*A quote in line 5 .* 2 more, through line 7\.$/], 7n],
  ],
  [
    'a stray quote that changes the number of fields',
    'csv',
    'id,name,tag\n1,"a\n2,b,"\n4,d,\n',
    [[2, /^The row has 2 fields.*A quote in line 2 .* 1 more, through line 3\.$/], 4n],
  ],
  [
    'a quote that does not end: the reason names the last line',
    'csv',
    'id,name\n1,"a\n2,b\n3,c\n',
    [[2, /does not end\. A quote in line 2 makes one record of it and 2 more, through line 4\.$/]],
  ],
]

describe('a file with', () => {
  for (const [title, format, content, expected] of files) {
    it(`${title} (${format}) loses no other line`, async () => {
      const entries = await read(content, format, 65_536)
      const seen = entries.slice(0, expected.length).map((entry, index) => {
        const wanted = expected[index]
        if (typeof wanted === 'bigint') return entry.plant?.id
        assert.match(entry.refusal?.message ?? '', wanted?.[1] ?? /$^/)
        return entry.line
      })
      assert.deepEqual(
        seen,
        expected.map((one) => (typeof one === 'bigint' ? one : one[0])),
      )
    })
  }
})

const unreadable: [title: string, Format, content: string | Buffer, message: RegExp][] = [
  ['a picture', 'csv', Buffer.from('89504e470d0a1a0a', 'hex'), /^line 1: /],
  ['no header', 'csv', '', /header row is missing/],
  [
    'a header without an id',
    'csv',
    'name,tag\na,b\n',
    /^line 1: The header has no column "id"\. It has: "name", "tag"\./,
  ],
  ...[',', ';', '\t'].map((delimiter): (typeof unreadable)[number] => [
    `a header that is too long, with ${JSON.stringify(delimiter)}`,
    'csv',
    `id,name${','.repeat(maxLineBytes - 6)}\n`.replaceAll(',', delimiter),
    /^line 1: The line is longer than 8256 bytes/,
  ]),
  [
    'a header in another language',
    'csv',
    'Nummer;Name;Schlagwort\n',
    /no column "id"\. It has: "Nummer", "Name", "Schlagwort"\. Rename the columns: id and name/,
  ],
  [
    'UTF-16',
    'csv',
    Buffer.from('\ufeffid\tname\n1\ta\n', 'utf16le'),
    /^line 1: The line is not UTF-8\. Save/,
  ],
  ['a header with a column twice', 'csv', 'id,name,name\n1,a,b\n', /^line 1: .*"name" twice/],
  [
    'gzip that ends too early',
    'ndjson',
    gzipSync('{"id":1,"name":"a"}\n'.repeat(50_000)).subarray(0, 300),
    /^line \d+: The gzip data/,
  ],
  [
    'gzip that is damaged',
    'ndjson',
    gzipSync('{"id":1,"name":"a"}\n').fill(7, 12, 16),
    /^line 1: The gzip data/,
  ],
]

describe('the whole file is refused if it is', () => {
  for (const [title, format, content, message] of unreadable) {
    it(`${title} (${format})`, async () => {
      await assert.rejects(read(content, format, 64), { name: 'UnreadableFile', message })
    })
  }
})

async function write(given: readonly StoredPlant[], format: Format): Promise<string> {
  const versioned = given.map((plant) => ({ ...plant, version: 1n }))
  const snapshot = {
    async *walkPlants() {
      for (let start = 0; start < versioned.length; start += 7)
        yield versioned.slice(start, start + 7)
    },
  } as unknown as Snapshot
  let written = ''
  const query = { format, after: undefined, tag: undefined, limit: undefined }
  for await (const piece of writePlants(snapshot, query)) written += piece
  return written
}

async function read(content: string | Buffer, format: Format, size: number): Promise<Entry[]> {
  const bytes = Buffer.from(content as string)
  async function* chunks() {
    for (let start = 0; start < bytes.length; start += size)
      yield bytes.subarray(start, start + size)
  }
  const entries: Entry[] = []
  for await (const some of readPlants(decompress(chunks()), buildReader(format)))
    entries.push(...some)
  return entries
}
