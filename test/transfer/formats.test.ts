import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { gzipSync } from 'node:zlib'
import fc from 'fast-check'
import { type Format, formatNames } from '../../src/contract/formats.ts'
import { maxRefusedText, type StoredPlant } from '../../src/contract/shapes.ts'
import { isStorable } from '../../src/contract/values.ts'
import { maxLineBytes } from '../../src/transfer/lines.ts'
import { anyCharacter } from '../support/characters.ts'
import { read, write } from './files.ts'

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
          const written = await write(sorted as StoredPlant[], { format })
          assert.deepEqual(
            (await read(written, size, format)).map(({ plant }) => plant),
            sorted,
          )
          const zipped = await read(gzipSync(written), size, format)
          const unzipped = zipped.map(({ plant }) => plant)
          assert.deepEqual(unzipped, sorted)
        }),
        { numRuns: 80, seed: 5 },
      )
    })
  }

  it('as csv has quotes around an empty text and blanks at an edge, and none for no tag', async () => {
    const given = [
      { id: 1n, name: 'a b' },
      { id: 2n, name: 'b', tag: '' },
      { id: 3n, name: '', tag: 'x,y' },
      { id: 4n, name: ' a', tag: 'b ' },
      { id: 5n, name: '\ta b\u00a0', tag: ' ' },
    ]
    const rows = ['1,a b,', '2,b,""', '3,"","x,y"', '4," a","b "', '5,"\ta b\u00a0"," "']
    assert.equal(await write(given, { format: 'csv' }), `id,name,tag\n${rows.join('\n')}\n`)
  })
})

/** A file, and what is expected for each entry: the id of the plant, or the line and the reason. */
type File = [title: string, content: string | Buffer, expected: (bigint | [number, RegExp])[]]
const csvFiles: File[] = [
  [
    'as many columns as a line can hold',
    `id,name${','.repeat(maxLineBytes - 7)}\n1,a\n`,
    [[2, new RegExp(`2 fields, but the header has ${maxLineBytes - 5}`)]],
  ],
  [
    'too many fields',
    `id,name\n1,a,b\n2,${','.repeat(8_000)}\n3,"a",${'"",'.repeat(2_000)}\n4,b\n`,
    [[2, /3 fields, but the header has 2/], [3, /8002 fields/], [4, /2003 fields/], 4n],
  ],
  [
    'the encoding of an older Excel',
    Buffer.from('id;name\r\n1;Käfer\r\n2;b\r\n3;"c\r\nü"\r\n4;d\r\n', 'latin1'),
    [[2, /^The line is not UTF-8\. Save the file as "CSV UTF-8/], 2n, [4, /"CSV UTF-8/], 4n],
  ],
  ['too few fields', 'id,name,tag\n1,a\n2,b,\n', [[2, /2 fields, but the header has 3/], 2n]],
  ['an id that a spreadsheet has rounded', 'id,name\n9.22337E+18,a\n', [[2, /in digits/]]],
  ['a name that is absent', 'id,name\n1,\n2,""\n', [[2, /"name" is absent/], 2n]],
  [
    'a quote within a field',
    'id,name\n1,5" pot\n2,"b"x\n3,c\n',
    [[2, /^Unexpected quote: put the whole field in quotes/], [3, /^Unexpected quote/], 3n],
  ],
  [
    'a quote that does not end within the bound',
    `id,name\n1,"${'a\n'.repeat(maxLineBytes)}2,b\n`,
    [[2, new RegExp(`does not end\\..* through line ${3 + (maxLineBytes - 4) / 2}\\.$`)]],
  ],
  [
    'a record of several lines that is as long as may be',
    `id,name\n1,"${'ü\n'.repeat((maxLineBytes - 4) / 3)}"\n2,b\n`,
    [1n, 2n],
  ],
  [
    'a record of several lines that is too long in bytes',
    `id,name\n1,"${'ü\n'.repeat((maxLineBytes - 4) / 3 + 1)}"\n2,b\n`,
    [[2, /does not end/]],
  ],
  ['a NUL character', 'id,name\n1,a\0b\n', [[2, /NUL/]]],
  [
    'a stray quote that another one ends: the reason names all lines between them',
    'id,name\n1,"a\n2,b\n3,c"\n4,"d\n5,e\n6,"f\n7,g\n',
    [1n, [5, /^Unexpected quote.*A quote in line 5 .* 2 more, through line 7\.$/], 7n],
  ],
  [
    'a stray quote that changes the number of fields',
    'id,name,tag\n1,"a\n2,b,"\n4,d,\n',
    [[2, /^The row has 2 fields.*A quote in line 2 .* 1 more, through line 3\.$/], 4n],
  ],
  [
    'a quote that does not end: the reason names the last line',
    'id,name\n1,"a\n2,b\n3,c\n',
    [[2, /does not end\. A quote in line 2 makes one record of it and 2 more, through line 4\.$/]],
  ],
]

const ndjsonFiles: File[] = [
  [
    'blank lines and a last line without an end',
    '\n{"id":1,"name":"a"}\r\n \n{"id":2,"name":"b"}',
    [1n, 2n],
  ],
  [
    'lines that are not JSON',
    '{"id":1,"name":"a"}\n{"id":2,\n\u00a0\n{"id":3,"name":"c"}\n',
    [1n, [2, /JSON/], [3, /JSON/], 3n],
  ],
  [
    'broken UTF-8',
    Buffer.from(
      '{"id":1,"name":"a"}\n{"id":2,"name":"\xff"}\n{"id":3,"name":"ü"}\n',
      'latin1',
    ).fill(0xc3, 52, 53),
    [1n, [2, /not UTF-8/], [3, /not UTF-8/]],
  ],
  [
    'a line of 10 MB',
    `{"id":1,"name":"a"}\n{"id":2,"name":"${'x'.repeat(10_000_000)}"}\n{"id":3,"name":"c"}\n`,
    [1n, [2, /longer than/], 3n],
  ],
  [
    'a byte order mark on the first line and on a later one',
    '\ufeff{"id":1,"name":"a"}\n\ufeff{"id":2,"name":"b"}\n{"id":3,"name":"c"}\n',
    [1n, [2, /JSON/], 3n],
  ],
  [
    'a byte order mark and a first line that is too long, without an end',
    `\ufeff{"id":1,"name":"a"}${' '.repeat(maxLineBytes)}x`,
    [[1, /longer than/]],
  ],
  ['lines without number', `{"id":1,"name":"a"}\n${'\n'.repeat(1_000_000)}`, [1n]],
]

for (const [format, files] of [
  ['csv', csvFiles],
  ['ndjson', ndjsonFiles],
] as const) {
  for (const [title, content, expected] of files) {
    it(`a file with ${title} (${format}) loses no other line`, async () => {
      const entries = await read(content, 65_536, format)
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
}

const unreadable: [title: string, Format, content: string | Buffer, message: RegExp][] = [
  ['a picture', 'csv', Buffer.from('89504e470d0a1a0a', 'hex'), /^line 1: /],
  ['no header', 'csv', '', /header row is missing/],
  [
    'a header that is too long',
    'csv',
    `id,name${','.repeat(maxLineBytes - 6)}\n`,
    /^line 1: The line is longer than 8256 bytes/,
  ],
  [
    'UTF-16',
    'csv',
    Buffer.from('\ufeffid\tname\n1\ta\n', 'utf16le'),
    /^line 1: The line is not UTF-8\. Save/,
  ],
  [
    'gzip that is damaged',
    'ndjson',
    gzipSync('{"id":1,"name":"a"}\n').fill(7, 12, 16),
    /^line 1: The gzip data/,
  ],
]

for (const character of ['x', 'ü', 'ト', '🌵']) {
  it(`a line that is too long keeps what a report has room for, of ${character}`, async () => {
    for (const format of formatNames) {
      const entries = await read(`id,name\n1,${character.repeat(9_000)}\n`, 1_000, format)
      const { text = '' } = entries.at(-1) ?? {}
      assert.ok(text.length >= maxRefusedText, `${text.length} characters`)
    }
  })
}

for (const [title, format, content, message] of unreadable) {
  it(`the whole file is refused if it is ${title} (${format})`, async () => {
    await assert.rejects(read(content, 64, format), { name: 'UnreadableFile', message })
  })
}
