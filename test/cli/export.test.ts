import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import {
  existsSync,
  lstatSync,
  readdirSync,
  readFileSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { before, describe, it } from 'node:test'
import { fileURLToPath } from 'node:url'
import { gunzipSync } from 'node:zlib'
import { run, runProcess } from '../support/command.ts'
import { engines } from '../support/engines.ts'
import { newFolder } from '../support/folder.ts'

const program = fileURLToPath(new URL('../../bin/plant-store.js', import.meta.url))

const plants = [
  { id: -(2n ** 63n), name: 'the smallest' },
  { id: -1n, name: '"quotes", commas,\nnewlines\r\n and \t', tag: ' ' },
  { id: 0n, name: '', tag: '' },
  { id: 1n, name: '' },
  { id: 2n, name: '\\N', tag: '\\N' },
  { id: 3n, name: '\\\\t\b\f\v\\', tag: "'; DROP TABLE plants; --" },
  {
    id: 2n ** 53n + 1n,
    name: 'plane 0 \uffff, 1 𐀀, 2 𠀀, 3 𰀀, 14 \u{e0001}, 16 \u{10ffff}',
    tag: '\u0001\u001f',
  },
  { id: 2n ** 63n - 1n, name: '\ufeff=1+1', tag: '🌵' },
]

for (const engine of engines) {
  describe(`plant-store export, from ${engine.name}`, () => {
    let url: string
    before(async () => {
      url = await engine.newUrl()
      const store = await engine.open(url)
      for (const plant of plants) await store.createPlant(plant)
    })

    for (const file of ['all.ndjson', 'all.csv', 'all.ndjson.gz', 'all.csv.gz']) {
      it(`writes ${file}, from which import makes the same store, byte for byte`, async () => {
        const folder = newFolder()
        const exported = await run(['export', file], { folder, env: { DATABASE_URL: url } })
        assert.equal(exported.exitCode, 0)
        assert.match(exported.stderr, /^Exported: 8 plants/)
        assert.deepEqual(readdirSync(folder), [file])
        assert.equal(statSync(join(folder, file)).mode & 0o777, 0o600)
        const env = { DATABASE_URL: await engine.newUrl() }
        assert.equal((await run(['import', file], { folder, env })).exitCode, 0)
        const copy = await engine.open(env.DATABASE_URL)
        const { plants: copied } = await copy.listPlants({
          after: undefined,
          tag: undefined,
          limit: 10,
        })
        assert.deepEqual(
          copied.map(({ id, name, tag }) => (tag === undefined ? { id, name } : { id, name, tag })),
          plants,
        )
        const again = await run(['export', `again-${file}`], { folder, env })
        assert.equal(again.exitCode, 0)
        const read = (name: string) => {
          const bytes = readFileSync(join(folder, name))
          return file.endsWith('.gz') ? gunzipSync(bytes) : bytes
        }
        assert.deepEqual(read(`again-${file}`), read(file))
      })
    }

    for (const [file, ...flags] of [
      ['all.tsv'],
      ['all.csv', '--delimiter', 'semicolon'],
      ['all.csv', '--delimiter', ';'],
      ['all.tsv.gz', '--delimiter', 'comma'],
    ] as const) {
      it(`writes ${[file, ...flags].join(' ')}, which import reads without being told`, async () => {
        const folder = newFolder()
        const env = { DATABASE_URL: url }
        assert.equal((await run(['export', file, ...flags], { folder, env })).exitCode, 0)
        const again = { DATABASE_URL: await engine.newUrl() }
        assert.equal((await run(['import', file], { folder, env: again })).exitCode, 0)
        const [before, after] = await Promise.all(
          [env, again].map((one) => run(['export', '--quiet'], { folder, env: one })),
        )
        assert.equal(after?.stdout, before?.stdout)
      })
    }

    it('writes the plants to standard output, and nothing else', async () => {
      const args = ['export', '--format', 'csv', '--tag', '', '--database', url]
      const { stdout, stderr } = await run(args, { folder: newFolder() })
      assert.equal(stdout, 'id,name,tag\n0,"",""\n')
      assert.match(stderr, /^Exported: 1 plant /)
    })
  })
}

describe('plant-store export', () => {
  it('writes CSV for spreadsheets, with a mark and no formulas', async () => {
    const folder = newFolder()
    const input = '{"id":-1,"name":"=1+1","tag":"@x"}\n{"id":2,"name":"Käfer"}\n'
    await run(['import', '-', '--format', 'ndjson', '--create'], { folder, input })
    const flags = ['--spreadsheet', '--delimiter', 'semicolon']
    assert.equal((await run(['export', 'p.csv', ...flags], { folder })).exitCode, 0)
    const written = readFileSync(join(folder, 'p.csv'), 'utf8')
    assert.equal(written, "\ufeffid;name;tag\n-1;'=1+1;'@x\n2;Käfer;\n")
  })

  it('never writes over the store', async () => {
    const folder = newFolder()
    const input = '{"id":1,"name":"a"}\n'
    await run(['import', '-', '--format', 'ndjson', '--create'], { folder, input })
    symlinkSync('data/plant-store.db', join(folder, 'link.csv'))
    for (const file of ['data/plant-store.db', 'data/plant-store.db-wal', 'link.csv']) {
      const { exitCode, stderr } = await run(['export', file, '--format', 'csv'], { folder })
      assert.equal(stderr, `${file} is a file of the store. Name another file.\n`)
      assert.equal(exitCode, 73)
    }
    assert.equal((await run(['export', '--quiet'], { folder })).stdout, input)
  })

  it('writes into a pipe, and through a link', async () => {
    const folder = newFolder()
    await run(['import', '-', '--format', 'ndjson', '--create'], {
      folder,
      input: '{"id":1,"name":"a"}\n',
    })
    execFileSync('mkfifo', [join(folder, 'pipe.csv')])
    const reading = readFile(join(folder, 'pipe.csv'), 'utf8')
    assert.equal((await run(['export', 'pipe.csv'], { folder })).exitCode, 0)
    assert.equal(await reading, 'id,name,tag\n1,a,\n')
    assert.ok(statSync(join(folder, 'pipe.csv')).isFIFO())
    writeFileSync(join(folder, 'real.csv'), 'old')
    symlinkSync('real.csv', join(folder, 'link.csv'))
    assert.equal((await run(['export', 'link.csv'], { folder })).exitCode, 0)
    assert.ok(lstatSync(join(folder, 'link.csv')).isSymbolicLink())
    assert.equal(readFileSync(join(folder, 'real.csv'), 'utf8'), 'id,name,tag\n1,a,\n')
  })

  it('says in one line that the disk is full', {
    skip: !existsSync('/dev/full') && 'there is no /dev/full',
  }, async () => {
    const folder = newFolder()
    await run(['import', '-', '--format', 'ndjson', '--create'], {
      folder,
      input: '{"id":1,"name":"a"}\n',
    })
    const { exitCode, stderr } = await run(['export', '/dev/full', '--format', 'csv'], { folder })
    assert.equal(stderr, 'Cannot write /dev/full: the disk is full.\n')
    assert.equal(exitCode, 73)
  })

  it('shows a terminal no character that it would obey, and gives a pipe all of them', {
    skip: !existsSync('/usr/bin/script') && 'there is no program "script"',
  }, async () => {
    const folder = newFolder()
    const name = '\u001b]0;owned\u0007\u001b[2J\u009b31m'
    const input = `${JSON.stringify({ id: 1, name })}\n`
    await run(['import', '-', '--format', 'ndjson', '--create'], { folder, input })
    for (const format of ['csv', 'ndjson']) {
      const command = `"${process.execPath}" "${program}" export - --quiet --format ${format}`
      const shown = await runProcess([], {
        folder,
        env: { PATH: process.env.PATH ?? '' },
        program: ['/usr/bin/script', '-qec', command, '/dev/null'],
      })
      assert.match(shown.stdout, /\\u001b]0;owned\\u0007/)
      assert.doesNotMatch(shown.stdout.replaceAll(/[\r\n]/g, ''), /\p{Cc}/u)
    }
    const piped = await run(['export', '-', '--quiet', '--format', 'csv'], { folder })
    assert.equal(piped.stdout, `id,name,tag\n1,${name},\n`)
  })

  it('replaces an existing file', async () => {
    const folder = newFolder()
    await run(['token', 'create', '--name', 'a', '--create'], { folder })
    writeFileSync(join(folder, 'plants.csv'), 'old')
    assert.equal((await run(['export', 'plants.csv'], { folder })).exitCode, 0)
    assert.equal(readFileSync(join(folder, 'plants.csv'), 'utf8'), 'id,name,tag\n')
  })
})
