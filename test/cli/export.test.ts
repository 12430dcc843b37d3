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
import { gunzipSync } from 'node:zlib'
import { compileShim } from '../faults/lab/shim.ts'
import { readTrace } from '../faults/lab/trace.ts'
import { runProcess } from '../support/command.ts'
import { engines } from '../support/engines.ts'
import { newFolder } from '../support/folder.ts'
import { command, ends, endsWith, newStore } from './ends.ts'

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

const dialects = ['all.tsv', 'all.csv --delimiter semicolon', 'all.tsv.gz --delimiter comma']

for (const engine of engines) {
  const forms = ['all.ndjson', 'all.csv', 'all.ndjson.gz', 'all.csv.gz']
  // Files are written alike whatever the engine.
  const files = engine.name === 'SQLite' ? [...forms, ...dialects] : forms.slice(0, 1)
  describe(`plant-store export, from ${engine.name}`, () => {
    let url: string
    before(async () => {
      url = await engine.newUrl()
      const store = await engine.open(url)
      for (const plant of plants) await store.createPlant(plant)
    })

    for (const line of files) {
      it(`writes ${line}, from which import makes the same store, byte for byte`, async () => {
        const folder = newFolder()
        const [file = '', ...flags] = line.split(' ')
        const options = { folder, env: { DATABASE_URL: url } }
        await ends(['export', file, ...flags], 0, /^Exported: 8 plants/, options)
        assert.deepEqual(readdirSync(folder), [file])
        assert.equal(statSync(join(folder, file)).mode & 0o777, 0o600)
        const env = { DATABASE_URL: await engine.newUrl() }
        await ends(['import', file], 0, /^Imported/, { folder, env })
        const copy = await engine.open(env.DATABASE_URL)
        const all = { after: undefined, tag: undefined, limit: 10 }
        const { plants: copied } = await copy.listPlants(all)
        assert.deepEqual(
          copied.map(({ id, name, tag }) => (tag === undefined ? { id, name } : { id, name, tag })),
          plants,
        )
        await ends(['export', `again-${file}`, ...flags], 0, /^Exported/, { folder, env })
        const read = (name: string) => {
          const bytes = readFileSync(join(folder, name))
          return file.endsWith('.gz') ? gunzipSync(bytes) : bytes
        }
        assert.deepEqual(read(`again-${file}`), read(file))
      })
    }

    it('writes the plants to standard output, and nothing else', async () => {
      const args = ['export', '--format', 'csv', '--tag', '', '--database', url]
      const written = await ends(args, 0, /^Exported: 1 plant /, newFolder())
      assert.equal(written, 'id,name,tag\n0,"",""\n')
    })
  })
}

describe('plant-store export', () => {
  it('writes CSV for spreadsheets, with a mark and no formulas', async () => {
    const input = '{"id":-1,"name":"=1+1","tag":"@x"}\n{"id":2,"name":"Käfer"}\n'
    const folder = await newStore(input)
    await ends('export p.csv --spreadsheet --delimiter semicolon --quiet', 0, '', folder)
    const written = readFileSync(join(folder, 'p.csv'), 'utf8')
    assert.equal(written, "\ufeffid;name;tag\n-1;'=1+1;'@x\n2;Käfer;\n")
  })

  it('writes into a pipe, and through a link', async () => {
    const folder = await newStore()
    execFileSync('mkfifo', [join(folder, 'pipe.csv')])
    const reading = readFile(join(folder, 'pipe.csv'), 'utf8')
    await ends('export pipe.csv --quiet', 0, '', folder)
    assert.equal(await reading, 'id,name,tag\n1,a,\n')
    assert.ok(statSync(join(folder, 'pipe.csv')).isFIFO())
    writeFileSync(join(folder, 'real.csv'), 'old')
    symlinkSync('real.csv', join(folder, 'link.csv'))
    await ends('export link.csv --quiet', 0, '', folder)
    assert.ok(lstatSync(join(folder, 'link.csv')).isSymbolicLink())
    assert.equal(readFileSync(join(folder, 'real.csv'), 'utf8'), 'id,name,tag\n1,a,\n')
  })

  it('shows a terminal no character that it would obey, and gives a pipe all of them', {
    skip: !existsSync('/usr/bin/script') && 'there is no program "script"',
  }, async () => {
    const name = '\u001b]0;owned\u0007\u001b[2J\u009b31m'
    const folder = await newStore(`${JSON.stringify({ id: 1, name })}\n`)
    for (const format of ['csv', 'ndjson']) {
      const line = `${command} export - --quiet --format ${format}`
      const shown = await runProcess([], {
        folder,
        env: { PATH: process.env.PATH ?? '' },
        program: ['/usr/bin/script', '-qec', line, '/dev/null'],
      })
      assert.match(shown.stdout, /\\u001b]0;owned\\u0007/)
      assert.doesNotMatch(shown.stdout.replaceAll(/[\r\n]/g, ''), /\p{Cc}/u)
    }
    const piped = await ends('export - --quiet --format csv', 0, '', folder)
    assert.equal(piped, `id,name,tag\n1,${name},\n`)
  })
})

const shim = compileShim()

for (const name of ['plants.csv', 'plants.csv.gz']) {
  it(`a file that export writes is synced before it gets its name, the folder after: ${name}`, {
    skip: shim.skip,
  }, async () => {
    const folder = await newStore()
    const trace = join(newFolder(), 'trace')
    const env = shim.toEnv?.({ folder, trace }) ?? {}
    await endsWith(runProcess(['export', join(folder, name)], { folder, env }), 0, /^Exported/)
    const steps = readTrace(trace)
      .filter(({ path }) => path === folder || path.includes('.part-'))
      .map(({ kind, path }) => (path === folder ? `${kind} folder` : kind))
    const last = steps.lastIndexOf('write')
    assert.notEqual(last, -1)
    assert.deepEqual(steps.slice(last, last + 4), ['write', 'sync', 'rename', 'sync folder'])
  })
}
