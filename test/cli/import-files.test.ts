import assert from 'node:assert/strict'
import { execFile, execFileSync } from 'node:child_process'
import { chmodSync, existsSync, readFileSync, writeFileSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import { describe, it } from 'node:test'
import { gzipSync } from 'node:zlib'
import { maxLineBytes } from '../../src/transfer/lines.ts'
import { run, start } from '../support/command.ts'
import { newFolder } from '../support/folder.ts'
import { withoutRights } from '../support/rights.ts'
import { waitUntil } from '../support/wait.ts'
import { ends, endsWith, openPipe, runShell } from './ends.ts'

const [one, two] = ['{"id":1,"name":"a","tag":"x"}\n', '{"id":2,"name":"b;c"}\n']

/** Imports a file into a new store and answers what is stored. */
async function importFile(
  [name, ...flags]: readonly [string, ...string[]],
  content: string,
  [exitCode, said]: readonly [number, RegExp] = [0, /^Imported/],
) {
  const folder = newFolder()
  writeFileSync(join(folder, name), content)
  await ends(['import', name, '--create', ...flags], exitCode, said, folder)
  return { folder, stored: await ends('export --quiet', 0, '', folder) }
}

const toBad = ['p.csv', '--rejects', 'bad.csv'] as const

const dialects: [title: string, name: string, content: string, flags: string[]][] = [
  ['a tab in .tsv', 'p.tsv', 'id\tname\ttag\n1\ta\tx\n2\tb;c\t\n', []],
  ['a semicolon', 'p.csv', 'id;name;tag\n1;a;x\n2;"b;c";\n', ['--delimiter', ';']],
  ['what sep= says', 'p.csv', 'sep=;\nid;name;tag\n1;a;x\n2;"b;c";\n', ['--delimiter', ';']],
  ['a tab by name', 'p.csv', 'tag\tid\tname\nx\t1\ta\n\t2\tb;c\n', ['--delimiter', 'tab']],
  ['a comma in .tsv', 'p.tsv', 'id,name,tag\n1,a,x\n2,b;c,\n', ['--delimiter', ',']],
  ['a semicolon by name', 'p.csv', 'id;name;tag\n1;a;x\n2;"b;c";\n', ['--delimiter', 'semicolon']],
  ['a vertical bar', 'p.csv', 'id|name|tag\n1|a|x\n2|b;c|\n', ['--delimiter', '|']],
  ['what its header shows', 'p.csv', '\ufeffid;name;tag\r\n1;a;x\r\n2;"b;c";\r\n', []],
  ['what its header shows in .tsv', 'p.tsv', 'sep=,\nid,name,tag\n1,a,x\n2,b;c,\n', []],
]

for (const [title, name, content, flags] of dialects) {
  it(`plant-store import separates fields by ${title}`, async () => {
    const { stored } = await importFile([name, ...flags], content)
    assert.equal(stored, one + two)
  })
}

describe('plant-store import from a named pipe', () => {
  it('reads what it has opened, even if the pipe gets another name', async () => {
    const folder = newFolder()
    execFileSync('mkfifo', [join(folder, 'pipe.ndjson')])
    const imported = ends('import pipe.ndjson --create', 0, /Imported into \S+: 1 stored/, folder)
    // Opens the pipe for writing as soon as the command reads it.
    const write = `exec > pipe.ndjson; mv pipe.ndjson other; printf '%s' '${one}'`
    execFile('sh', ['-c', write], { cwd: folder, timeout: 60_000 })
    await imported
  })

  it('ends at a header without an id, even if its writer does not', {
    timeout: 60_000,
  }, async () => {
    const folder = newFolder()
    writeSync(openPipe(join(folder, 'pipe.csv')), 'foo,bar\n')
    await endsWith(start(['import', 'pipe.csv', '--create'], { folder }).ended, 65, /./)
  })
})

it('plant-store import --dry-run reports what the import then reports, and makes no store', async () => {
  const folder = newFolder()
  const options = { folder, input: `${one}{"id":1}\n${two}` }
  const line = 'import - --format ndjson --create'
  const refused = String.raw`^line 2: .*"name" is missing.*\n`
  const counts = String.raw`into \S+: 2 stored, 1 invalid \(`
  const would = `Dry run, nothing was stored\\. Would import ${counts}`
  await ends(`${line} --dry-run`, 65, new RegExp(refused + would), options)
  assert.equal(existsSync(join(folder, 'data')), false)
  await ends(line, 65, new RegExp(`${refused}Imported ${counts}`), options)
  const again = { folder, input: one + two }
  const there = /Would import into \S+: 0 stored, 2 already there \(/
  await ends(`${line} --dry-run`, 0, there, again)
})

for (const delimiter of [',', ';', '\t']) {
  it(`--rejects from CSV is a file to mend and import, with ${JSON.stringify(delimiter)}`, async () => {
    const csv = (...rows: string[]) => `${rows.join('\n')}\n`.replaceAll(',', delimiter)
    const input = csv('tag,id,name', 'x,1,a', 'y,zwei,b', 'z,3', '"w\nw",drei,"c ""d"""')
    const { folder, stored } = await importFile(toBad, input, [65, /1 stored, 3 invalid/])
    assert.equal(stored, one)
    const bad = join(folder, 'bad.csv')
    const rejects = readFileSync(bad, 'utf8')
    assert.match(rejects, /^rejected_line.rejected_reason.tag.id.name\n3."Column ""id"" must/)
    assert.equal(rejects.includes(csv('z,3')), true)

    // Two are mended, one is still wrong.
    writeFileSync(bad, rejects.replace('zwei', '2').replace('drei', '4'))
    const mended = /Imported into \S+: 2 stored, 1 invalid/
    await ends('import bad.csv --rejects worse.csv', 65, mended, folder)
    const worse = readFileSync(join(folder, 'worse.csv'), 'utf8')
    assert.match(worse, /^rejected_line.rejected_reason.tag.id.name\n3."The row has 4 fields/)
    assert.equal(worse.match(/rejected_line/g)?.length, 1)

    writeFileSync(join(folder, 'worse.csv'), worse.replace(/z.3\n$/, csv('z,3,c')))
    await ends('import worse.csv', 0, /Imported into \S+: 1 stored \(/, folder)
    const all = await ends('export --quiet --format csv', 0, '', folder)
    assert.equal(all, 'id,name,tag\n1,a,x\n2,b,y\n3,c,z\n4,"c ""d""","w\nw"\n')
  })
}

for (const [bytes, kept] of [
  [maxLineBytes, maxLineBytes],
  [maxLineBytes + 1, 0],
] as const) {
  it(`--rejects of a long row keeps ${kept} of ${bytes} characters`, async () => {
    const row = 'one,'.padEnd(bytes, 'x')
    const { folder } = await importFile(toBad, `id,name\n${row}\n`, [65, /1 invalid/])
    const rejects = readFileSync(join(folder, 'bad.csv'), 'utf8')
    assert.ok(rejects.endsWith(`,${row.slice(0, kept)}\n`), rejects.slice(0, 200))
    assert.equal(rejects.includes('longer than'), kept < bytes)
  })
}

const rows: [title: string, content: string][] = [
  ['few quotes', 'rejected_line;rejected_reason;id;name\n2;Any reason.;zwei;b\n'],
  ['more quotes', '"rejected_line";"rejected_reason";"id";"name"\n2;"A ""reason"";";zwei;b\n'],
]
for (const [title, content] of rows) {
  it(`--rejects of rejects that a spreadsheet has saved has each column once, with ${title}`, async () => {
    const { folder } = await importFile(toBad, content, [65, /1 invalid/])
    const [head, row = ''] = readFileSync(join(folder, 'bad.csv'), 'utf8').split('\n')
    assert.match(`${head}`, /^rejected_line;rejected_reason;"?id"?;"?name"?$/)
    assert.match(row, /^2;"Column ""id"" must be [^;]+";zwei;b$/)
  })
}

it('plant-store import counts what is stored when the gzip data ends early', async () => {
  const lines = Array.from({ length: 60_000 }, (_, id) => `{"id":${id},"name":"${id * 7}"}\n`)
  const zipped = gzipSync(lines.join(''))
  const half = zipped.subarray(0, zipped.length * 0.7)
  const options = { folder: newFolder(), input: half }
  const { exitCode, stderr } = await run('import - --format ndjson --create'.split(' '), options)
  assert.equal(exitCode, 65)
  const said =
    /^Imported so far into \S+: ([\d,]+) stored .*\nline \d+: The gzip data .* Lines after (\d+) were/m
  const [, count = '', last = ''] = said.exec(stderr) ?? []
  assert.ok(Number(last) > 10_000, stderr)
  const stored = await ends('export --quiet', 0, '', options)
  assert.equal(stored, lines.slice(0, Number(last)).join(''))
  assert.equal(count.replace(',', ''), last)
})

describe('plant-store import --rejects', () => {
  it('says in one line that the rejects of another user cannot be read', async () => {
    const folder = newFolder()
    chmodSync(folder, 0o777)
    writeFileSync(join(folder, 'plants.ndjson'), '{}\n', { mode: 0o644 })
    writeFileSync(join(folder, 'rejects'), '{"line":1}\n', { mode: 0o200 })
    const said = 'Cannot write --rejects rejects: permission denied.\n'
    const line = 'import plants.ndjson --rejects rejects --create'
    // Loads the command: the other user may not read the checkout.
    const other = newFolder()
    writeFileSync(join(other, 'plants.ndjson'), '{}\n')
    await ends(line, 65, / The rejected lines are in rejects\.\n$/, other)
    await withoutRights(() => ends(line, 73, said, folder))
  })

  it('never writes over standard input', async () => {
    const folder = newFolder()
    const path = join(folder, 'plants.ndjson')
    const content = '{"line":1,"id":1,"name":"a"}\n'
    writeFileSync(path, content)
    const line = 'plant_store import - --format ndjson --rejects plants.ndjson < plants.ndjson'
    const said = /^--rejects plants\.ndjson is the file to import/
    await endsWith(runShell(line, { folder }), 73, said)
    assert.equal(readFileSync(path, 'utf8'), content)
  })

  /** Imports lines, and answers their rejects, which replace those of an earlier import. */
  async function reject(input: string | Buffer, folder = newFolder()) {
    const line = 'import - --format ndjson --rejects bad --create'
    const said = / The rejected lines are in bad\.\n$/
    await ends(line, 65, said, { folder, input })
    const written = readFileSync(join(folder, 'bad'), 'utf8')
    const rejects: { line: number; text: string }[] = written
      .trimEnd()
      .split('\n')
      .map((one) => JSON.parse(one))
    return { written, rejects, folder }
  }

  it('writes control characters as escapes, which JSON reads as what they are', async () => {
    const text = '{"id":"\u009b31m\u007f\u202e"}'
    const { written, rejects } = await reject(`${text}\n`)
    assert.doesNotMatch(written.trimEnd(), /\p{Cc}|\u202e/u)
    assert.equal(rejects[0]?.text, text)
  })

  it('writes 100,000 lines and no more, however small the file is that has them', async () => {
    const folder = newFolder()
    const input = gzipSync(`{"id":1,"name":"a"}\n${'x\n'.repeat(100_010)}`)
    const said = /bad ends here: it has 100,000 lines\.\n.*100,010 invalid/s
    await ends('import - --format ndjson --rejects bad --create', 65, said, { folder, input })
    const rejects = readFileSync(join(folder, 'bad'), 'utf8').trimEnd().split('\n')
    assert.equal(rejects.length, 100_000)
    assert.equal(JSON.parse(rejects.at(-1) as string).line, 100_001)
  })

  it('replaces the rejects of an earlier import', async () => {
    const { folder } = await reject('{"id":1}\n{"id":2}\n')
    const { rejects } = await reject('{"id":3}\n', folder)
    const texts = rejects.map(({ text }) => text)
    assert.deepEqual(texts, ['{"id":3}'])
  })
})

const ndjson = 'import - --format ndjson --create'

describe('plant-store import ends with one clear line for', () => {
  it('control characters in the columns that are not stored, shown as escapes', async () => {
    const options = { folder: newFolder(), input: 'id,name,\u009b31m\u007f\n' }
    const said = /^Columns that are not stored: \\u009b31m\\u007f\.\n/
    await ends('import - --format csv --create', 0, said, options)
  })

  it('a disk without space for rejects', {
    skip: !existsSync('/dev/full') && 'there is no /dev/full',
  }, async () => {
    const said =
      /^Imported so far into .*: 0 stored, 1 invalid .*\nCannot write --rejects \/dev\/full: the disk is full\. Lines after 1/
    const options = { folder: newFolder(), input: '{"id":1}\n' }
    await ends(`${ndjson} --rejects /dev/full`, 73, said, options)
  })

  it('SIGHUP, even while a named pipe has no writer', {
    skip: process.platform !== 'linux' && 'only Linux tells which signals a process handles',
  }, async () => {
    const folder = newFolder()
    execFileSync('mkfifo', [join(folder, 'pipe.csv')])
    const { child, ended } = start(['import', 'pipe.csv', '--create'], { folder })
    await waitUntil(() => handlesHangUp(Number(child.pid)), 'the command handles SIGHUP')
    child.kill('SIGHUP')
    assert.equal((await ended).stderr, 'Stopped.\n')
    assert.equal(child.signalCode, 'SIGHUP')
  })

  it('a file that may not be read', async () => {
    const folder = newFolder()
    writeFileSync(join(folder, 'plants.csv'), 'id,name\n')
    // Another user may not be able to load the code of the command.
    await ends('import plants.csv --create', 0, /^Imported/, folder)
    chmodSync(join(folder, 'plants.csv'), 0)
    chmodSync(folder, 0o755)
    const said = 'Cannot read plants.csv: permission denied.\n'
    await withoutRights(() => ends('import plants.csv', 66, said, folder))
  })
})

/** Whether a process has a handler for SIGHUP, the first of the signals in the mask. */
function handlesHangUp(pid: number): boolean {
  const mask = /^SigCgt:\s*([0-9a-f]+)$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]
  return (BigInt(`0x${mask ?? '0'}`) & 1n) === 1n
}
