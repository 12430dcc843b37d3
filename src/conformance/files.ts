import { isDeepStrictEqual } from 'node:util'
import { gunzipSync, gzipSync } from 'node:zlib'
import { broken, expect, type Heard, require, toJson, toText } from './expect.ts'
import { contract, type Promised } from './promised.ts'
import { type Call, get, json, remove, type Server } from './server.ts'

const mediaTypes = { ndjson: 'application/x-ndjson', csv: 'text/csv' }
type Format = keyof typeof mediaTypes

/** A file of plants to import. */
interface File {
  readonly format: Format
  readonly text: string | Buffer
  readonly makes: readonly bigint[]
  readonly query?: string
  readonly headers?: Call['headers']
}

function upload(s: Server, { format, text, makes, query = '', headers }: File): Promise<Heard> {
  return s.ask({
    method: 'POST',
    path: `/plants.${format}${query}`,
    headers: { 'Content-Type': mediaTypes[format], ...headers },
    body: text,
    makes,
  })
}

const none = { stored: 0n, alreadyThere: 0n, replaced: 0n, skipped: 0n, conflicts: 0n, invalid: 0n }

/** Requires the report of an import that has refused nothing. */
function expectReport(heard: Heard, counts: Partial<typeof none> & { lines: bigint }): void {
  const body = { ...none, ...counts, refused: [], refusedInAll: 0n }
  expect(heard, { status: 200, body })
}

const line = (id: bigint, name: string) => `{"id":${id},"name":"${name}"}\n`

const imports: readonly Promised[] = [
  contract(106, 'An import of NDJSON stores each line, and reports the counts.', async (s) => {
    const makes = await s.newIds(2)
    const [first = 0n, second = 0n] = makes
    const text = `${line(first, 'a')}{"id":${second},"name":"b","tag":""}`
    expectReport(await upload(s, { format: 'ndjson', text, makes }), { lines: 2n, stored: 2n })
    await s.expect({ path: `/plants/${first}` }, { body: { id: first, name: 'a' } })
    await s.expect({ path: `/plants/${second}` }, { body: { id: second, name: 'b', tag: '' } })
  }),
  contract(107, 'The same file again finds its plants there.', async (s) => {
    const makes = await s.newIds(1)
    const file = { format: 'ndjson', text: line(makes[0] ?? 0n, 'a'), makes } as const
    expectReport(await upload(s, file), { lines: 1n, stored: 1n })
    expectReport(await upload(s, file), { lines: 1n, alreadyThere: 1n })
  }),
  contract(108, 'CSV has commas, semicolons or tabs; a BOM and sep= are read over.', async (s) => {
    for (const [start, delimiter] of [
      ['', ','],
      ['\ufeff', ';'],
      ['sep=\t\r\n', '\t'],
    ] as const) {
      const makes = await s.newIds(1)
      const [id = 0n] = makes
      const rows = [
        ['tag', 'id', 'name'],
        ['', id, '"a ""b"""'],
      ]
      const text = `${start}${rows.map((row) => `${row.join(delimiter)}\r\n`).join('')}`
      expectReport(await upload(s, { format: 'csv', text, makes }), { lines: 1n, stored: 1n })
      await s.expect(get(id), { body: { id, name: 'a "b"' } })
    }
  }),
  contract(109, 'A refused line is reported with line, id, error and message.', async (s) => {
    const { id } = await s.create()
    const makes = await s.newIds(1)
    const text = `no JSON\n${line(makes[0] ?? 0n, 'a')}${line(id, 'b')}`
    const heard = await upload(s, { format: 'ndjson', text, makes })
    const report = expect(heard, { status: 200 }) as { refused: Record<string, unknown>[] }
    const refused = (report.refused ?? []).map(({ message, ...rest }) => {
      require(heard, typeof message === 'string' && message !== '', 'a message for each line')
      return rest
    })
    const counts = {
      ...none,
      lines: 3n,
      stored: 1n,
      conflicts: 1n,
      invalid: 1n,
      refusedInAll: 2n,
    }
    expect(heard, { body: { ...counts, refused: report.refused } })
    const expected = [
      { line: 1n, error: 40001n },
      { line: 3n, id, error: 40900n },
    ]
    require(heard, isDeepStrictEqual(refused, expected), `refused: ${toJson(expected)}`)
  }),
  contract(110, 'on-conflict=skip keeps a plant, replace replaces it.', async (s) => {
    const { id, name } = await s.create()
    const file = { format: 'ndjson', text: line(id, 'new'), makes: [id] } as const
    const skip = await upload(s, { ...file, query: '?on-conflict=skip' })
    expectReport(skip, { lines: 1n, skipped: 1n })
    await s.expect(get(id), { body: { id, name } })
    const replace = await upload(s, { ...file, query: '?on-conflict=replace' })
    expectReport(replace, { lines: 1n, replaced: 1n })
    await s.expect(get(id), { body: { id, name: 'new' } })
  }),
  contract(111, 'An import may be gzipped; damaged gzip is 40000.', async (s) => {
    const makes = await s.newIds(1)
    const text = gzipSync(line(makes[0] ?? 0n, 'a'))
    const file = { format: 'ndjson', makes, headers: { 'Content-Encoding': 'gzip' } } as const
    expect(await upload(s, { ...file, text: text.subarray(0, 20) }), { error: 40000 })
    expectReport(await upload(s, { ...file, text }), { lines: 1n, stored: 1n })
  }),
  contract(112, 'Imports refuse other media types, blank files and unknown rules.', async (s) => {
    const makes = await s.newIds(1)
    const file = { format: 'csv', text: `id,name\n${makes[0]},a\n`, makes } as const
    expect(await upload(s, { ...file, headers: json }), { error: 41500 })
    expect(await upload(s, { ...file, text: '\n' }), { error: 40002 })
    // The query is judged before the media type.
    expect(await upload(s, { ...file, headers: json, query: '?on-conflict=x' }), { error: 40005 })
  }),
  contract(113, 'CSV without a usable header is 40003.', async (s) => {
    const makes = await s.newIds(1)
    for (const text of [`${makes[0]},a\n`, `id\n${makes[0]}\n`, `id,id,name\n${makes[0]},,a\n`]) {
      expect(await upload(s, { format: 'csv', text, makes }), { error: 40003 })
    }
  }),
]

const exports: readonly Promised[] = [
  contract(114, 'An export as NDJSON has a plant on each line, ascending.', async (s) => {
    const tag = s.newText()
    const plants = await createTagged(s, tag)
    const path = `/plants.ndjson?tag=${tag}&after=${(plants[0]?.id ?? 0n) - 1n}&limit=2`
    const heard = await s.expect(
      { path },
      {
        status: 200,
        headers: {
          'Content-Type': /^application\/x-ndjson/,
          'Content-Disposition': 'attachment; filename="plants.ndjson"',
        },
      },
    )
    const text = plants
      .slice(0, 2)
      .map(({ id, name }) => `{"id":${id},"name":"${name}","tag":"${tag}"}\n`)
    require(heard, toText(heard) === text.join(''), `the body ${text.join('')}`)
  }),
  contract(115, 'An export as CSV has a header, and quotes where they are needed.', async (s) => {
    const tag = s.newText()
    const { id } = await s.create({ tag, name: 'a,"b"\n' })
    const path = `/plants.csv?tag=${tag}&after=${id - 1n}`
    const headers = {
      'Content-Type': /^text\/csv/,
      'Content-Disposition': 'attachment; filename="plants.csv"',
    }
    const heard = await s.expect({ path }, { status: 200, headers })
    const expected = `id,name,tag\n${id},"a,""b""\n",${tag}\n`
    require(heard, toText(heard).replaceAll('\r\n', '\n') === expected, `the body ${expected}`)
  }),
  contract(116, 'An export is gzipped for a client that accepts it.', async (s) => {
    const { id, name } = await s.create()
    const headers = { 'Accept-Encoding': 'gzip' }
    const call = { path: `/plants.ndjson?after=${id - 1n}&limit=1`, headers }
    const heard = await s.expect(call, { status: 200, headers: { 'Content-Encoding': 'gzip' } })
    const text = unzip(heard)
    require(heard, text === line(id, name), `the gzipped body ${line(id, name)}`)
  }),
  contract(117, 'What was exported is imported again as it was.', async (s) => {
    const name = ' "tricky", \u{1f335};\t= '
    for (const format of ['ndjson', 'csv'] as const) {
      const { id } = await s.create({ name, tag: '' })
      const text = (await s.ask({ path: `/plants.${format}?after=${id - 1n}&limit=1` })).body
      await s.expect(remove(id), { status: 204 })
      expectReport(await upload(s, { format, text, makes: [id] }), { lines: 1n, stored: 1n })
      await s.expect(get(id), { body: { id, name, tag: '' } })
    }
  }),
]

async function createTagged(s: Server, tag: string) {
  const ids = await s.newIds(3)
  return Promise.all(ids.map((id) => s.create({ id, tag })))
}

function unzip(heard: Heard): string {
  try {
    return gunzipSync(heard.body, { maxOutputLength: 1024 * 1024 }).toString()
  } catch {
    throw broken(heard, 'a gzipped body')
  }
}

/** Imports and exports. */
export const files: readonly Promised[] = [...imports, ...exports]
