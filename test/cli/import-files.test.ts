import assert from 'node:assert/strict'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, it } from 'node:test'
import { gzipSync } from 'node:zlib'
import { maxLineBytes } from '../../src/transfer/lines.ts'
import { run } from '../support/command.ts'
import { newFolder } from '../support/folder.ts'

const [one, two] = ['{"id":1,"name":"a","tag":"x"}\n', '{"id":2,"name":"b;c"}\n']

/** Imports a file into a new store and answers what the command said and what is stored. */
async function importFile(name: string, content: string | Buffer, ...flags: string[]) {
  const folder = newFolder()
  writeFileSync(join(folder, name), content)
  const imported = await run(['import', name, '--create', ...flags], { folder })
  const exported = await run(['export', '--quiet'], { folder })
  return { ...imported, folder, stored: exported.stdout }
}

const dialects: [title: string, name: string, content: string, flags: string[]][] = [
  ['a tab in .tsv', 'p.tsv', 'id\tname\ttag\n1\ta\tx\n2\tb;c\t\n', []],
  ['a semicolon', 'p.csv', 'id;name;tag\n1;a;x\n2;"b;c";\n', ['--delimiter', ';']],
  ['what sep= says', 'p.csv', 'sep=;\nid;name;tag\n1;a;x\n2;"b;c";\n', ['--delimiter', ';']],
  ['a tab by name', 'p.csv', 'tag\tid\tname\nx\t1\ta\n\t2\tb;c\n', ['--delimiter', 'tab']],
  ['a tab as an escape', 'p.csv', 'tag\tid\tname\nx\t1\ta\n\t2\tb;c\n', ['--delimiter', '\\t']],
  ['a comma in .tsv', 'p.tsv', 'id,name,tag\n1,a,x\n2,b;c,\n', ['--delimiter', ',']],
  ['a semicolon by name', 'p.csv', 'id;name;tag\n1;a;x\n2;"b;c";\n', ['--delimiter', 'semicolon']],
  ['a vertical bar', 'p.csv', 'id|name|tag\n1|a|x\n2|b;c|\n', ['--delimiter', '|']],
  ['what its header shows', 'p.csv', '\ufeffid;name;tag\r\n1;a;x\r\n2;"b;c";\r\n', []],
  ['what its header shows in .tsv', 'p.tsv', 'sep=,\nid,name,tag\n1,a,x\n2,b;c,\n', []],
]

describe('plant-store import separates fields by', () => {
  for (const [title, name, content, flags] of dialects) {
    it(title, async () => {
      const { exitCode, stderr, stored } = await importFile(name, content, ...flags)
      assert.equal(stored, one + two, stderr)
      assert.equal(exitCode, 0)
    })
  }
})

describe('plant-store import --dry-run', () => {
  it('reports what the import then reports, and makes no store', async () => {
    const folder = newFolder()
    const input = `${one}{"id":1}\n${two}`
    const args = ['import', '-', '--format', 'ndjson', '--create']
    const { exitCode, stderr } = await run([...args, '--dry-run'], { folder, input })
    assert.match(
      stderr,
      /^line 2: .*"name" is missing.*\nDry run, nothing was stored\. Would import into \S+: 2 stored, 1 invalid \(/,
    )
    assert.equal(exitCode, 65)
    assert.equal(existsSync(join(folder, 'data')), false)
    const done = await run(args, { folder, input })
    assert.match(done.stderr, /^line 2: .*\nImported into \S+: 2 stored, 1 invalid \(/)
    const again = await run([...args, '--dry-run'], { folder, input: one + two })
    assert.match(again.stderr, /Would import into \S+: 0 stored, 2 already there \(/)
    assert.equal(again.exitCode, 0)
  })
})

describe('plant-store import --rejects from CSV', () => {
  for (const delimiter of [',', ';', '\t']) {
    it(`is a file that can be mended and imported, with ${JSON.stringify(delimiter)}`, async () => {
      const csv = (...rows: string[]) => `${rows.join('\n')}\n`.replaceAll(',', delimiter)
      const flags = ['--rejects', 'bad.csv']
      const input = csv('tag,id,name', 'x,1,a', 'y,zwei,b', 'z,3', '"w\nw",drei,"c ""d"""')
      const { folder, exitCode, stored } = await importFile('p.csv', input, ...flags)
      assert.equal(exitCode, 65)
      assert.equal(stored, one)
      const bad = join(folder, 'bad.csv')
      const rejects = readFileSync(bad, 'utf8')
      assert.match(rejects, /^rejected_line.rejected_reason.tag.id.name\n3."Column ""id"" must/)
      assert.equal(rejects.includes(csv('z,3')), true)

      // Two are mended, one is still wrong.
      writeFileSync(bad, rejects.replace('zwei', '2').replace('drei', '4'))
      const args = ['import', 'bad.csv', '--rejects', 'worse.csv']
      const again = await run(args, { folder })
      assert.match(again.stderr, /Imported into \S+: 2 stored, 1 invalid/)
      const worse = readFileSync(join(folder, 'worse.csv'), 'utf8')
      assert.match(worse, /^rejected_line.rejected_reason.tag.id.name\n3."The row has 4 fields/)
      assert.equal(worse.match(/rejected_line/g)?.length, 1)

      writeFileSync(join(folder, 'worse.csv'), worse.replace(/z.3\n$/, csv('z,3,c')))
      const last = await run(['import', 'worse.csv'], { folder })
      assert.match(last.stderr, /Imported into \S+: 1 stored \(/)
      const all = await run(['export', '--quiet', '--format', 'csv'], { folder })
      assert.equal(all.stdout, 'id,name,tag\n1,a,x\n2,b,y\n3,c,z\n4,"c ""d""","w\nw"\n')
    })
  }
})

describe('plant-store import --rejects of a long row', () => {
  for (const [bytes, kept] of [
    [maxLineBytes, maxLineBytes],
    [maxLineBytes + 1, 1_000],
  ] as const) {
    it(`keeps ${kept} of ${bytes} characters`, async () => {
      const row = 'one,'.padEnd(bytes, 'x')
      const { folder } = await importFile('p.csv', `id,name\n${row}\n`, '--rejects', 'bad.csv')
      const rejects = readFileSync(join(folder, 'bad.csv'), 'utf8')
      assert.ok(rejects.endsWith(`,${row.slice(0, kept)}\n`), rejects.slice(0, 200))
      assert.equal(rejects.includes('longer than'), kept < bytes)
    })
  }
})

describe('plant-store import --rejects of rejects that a spreadsheet has saved', () => {
  const rows: [title: string, content: string][] = [
    ['few quotes', 'rejected_line;rejected_reason;id;name\n2;Any reason.;zwei;b\n'],
    ['more quotes', '"rejected_line";"rejected_reason";"id";"name"\n2;"A ""reason"";";zwei;b\n'],
  ]
  for (const [title, content] of rows) {
    it(`has each column once, with ${title}`, async () => {
      const { folder } = await importFile('p.csv', content, '--rejects', 'bad.csv')
      const [head, row = ''] = readFileSync(join(folder, 'bad.csv'), 'utf8').split('\n')
      assert.match(`${head}`, /^rejected_line;rejected_reason;"?id"?;"?name"?$/)
      assert.match(row, /^2;"Column ""id"" must be [^;]+";zwei;b$/)
    })
  }
})

describe('the report of an import that ends early', () => {
  it('counts what is stored when the gzip data ends early', async () => {
    const lines = Array.from({ length: 60_000 }, (_, id) => `{"id":${id},"name":"${id * 7}"}\n`)
    const zipped = gzipSync(lines.join(''))
    const half = zipped.subarray(0, zipped.length * 0.7)
    const { exitCode, stderr, stored } = await importFile('p.ndjson', half)
    const [, count = '', last = ''] =
      /^Imported so far into \S+: ([\d,]+) stored .*\nline \d+: The gzip data .* Lines after (\d+) were/m.exec(
        stderr,
      ) ?? []
    assert.equal(exitCode, 65)
    assert.ok(Number(last) > 10_000, stderr)
    assert.equal(stored, lines.slice(0, Number(last)).join(''))
    assert.equal(count.replace(',', ''), last)
  })
})
