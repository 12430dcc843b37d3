import assert from 'node:assert/strict'
import {
  chmodSync,
  existsSync,
  linkSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { describe, it } from 'node:test'
import { gzipSync } from 'node:zlib'
import { run } from '../support/command.ts'
import { newFolder } from '../support/folder.ts'
import { withoutRights } from '../support/rights.ts'
import { runShell } from './shell.ts'

describe('plant-store import --rejects', () => {
  it('never writes over the file that it reads, however that is named', async () => {
    const folder = newFolder()
    const path = join(folder, 'plants.ndjson')
    const content = '{"line":1,"id":1,"name":"a"}\n{"line":2}\n'
    writeFileSync(path, content)
    mkdirSync(join(folder, 'sub'))
    symlinkSync(path, join(folder, 'link'))
    linkSync(path, join(folder, 'hard-link'))
    for (const rejects of ['plants.ndjson', 'sub/../plants.ndjson', path, 'link', 'hard-link']) {
      const args = ['import', 'plants.ndjson', '--rejects', rejects]
      const { exitCode, stderr } = await run(args, { folder })
      assert.equal(stderr, `--rejects ${rejects} is the file to import. Name another file.\n`)
      assert.equal(exitCode, 73)
      assert.equal(readFileSync(path, 'utf8'), content)
    }
    assert.equal(existsSync(join(folder, 'data')), false)
  })

  it('says in one line that the rejects of another user cannot be read', async () => {
    const folder = newFolder()
    chmodSync(folder, 0o777)
    writeFileSync(join(folder, 'plants.ndjson'), '{}\n', { mode: 0o644 })
    writeFileSync(join(folder, 'rejects'), '{"line":1}\n', { mode: 0o200 })
    const args = ['import', 'plants.ndjson', '--rejects', 'rejects', '--create']
    const { exitCode, stderr } = await withoutRights(() => run(args, { folder }))
    assert.equal(stderr, 'Cannot write --rejects rejects: permission denied.\n')
    assert.equal(exitCode, 73)
  })

  it('never writes over standard input', async () => {
    const folder = newFolder()
    const path = join(folder, 'plants.ndjson')
    const content = '{"line":1,"id":1,"name":"a"}\n'
    writeFileSync(path, content)
    const line = 'plant_store import - --format ndjson --rejects plants.ndjson < plants.ndjson'
    const { exitCode, stderr } = await runShell(line, { folder })
    assert.match(stderr, /^--rejects plants\.ndjson is the file to import/)
    assert.equal(exitCode, 73)
    assert.equal(readFileSync(path, 'utf8'), content)
  })

  it('never writes over the store, even one that does not exist yet', async () => {
    const folder = newFolder()
    for (const suffix of ['', '-wal', '-shm', '-journal']) {
      const args = ['import', '-', '--format', 'ndjson', '--rejects', `./plants.db${suffix}`]
      const { exitCode, stderr } = await run([...args, '--database', 'sqlite:plants.db'], {
        folder,
        input: '{"id":1}\n',
      })
      assert.match(stderr, /^--rejects .* is a file of the store\. Name another file\.\n$/)
      assert.equal(exitCode, 73)
      assert.deepEqual(readdirSync(folder), [])
    }
  })

  it('writes the beginning of a long line and how much is left out', async () => {
    const folder = newFolder()
    const long = `{"id":"${'x'.repeat(8_000)}"}`
    const bomb = gzipSync(`${long}\n`.repeat(20))
    const args = ['import', '-', '--format', 'ndjson', '--rejects', 'bad', '--create']
    await run(args, { folder, input: bomb })
    const rejects = readFileSync(join(folder, 'bad'), 'utf8').trimEnd().split('\n')
    assert.equal(rejects.length, 20)
    for (const reject of rejects) {
      const { text, omittedCharacters } = JSON.parse(reject)
      assert.equal(text, long.slice(0, text.length))
      assert.equal(text.length, 4_096)
      assert.equal(text.length + omittedCharacters, long.length)
    }
  })

  it('writes control characters as escapes, which JSON reads as what they are', async () => {
    const folder = newFolder()
    const text = '{"id":"\u009b31m\u007f\u202e"}'
    const args = ['import', '-', '--format', 'ndjson', '--rejects', 'bad', '--create']
    await run(args, { folder, input: `${text}\n` })
    const reject = readFileSync(join(folder, 'bad'), 'utf8')
    assert.doesNotMatch(reject.trimEnd(), /\p{Cc}|\u202e/u)
    assert.equal(JSON.parse(reject).text, text)
  })

  it('writes 100,000 lines and no more, however small the file is that has them', async () => {
    const folder = newFolder()
    const content = `{"id":1,"name":"a"}\n${'x\n'.repeat(100_010)}`
    writeFileSync(join(folder, 'many.ndjson.gz'), gzipSync(content))
    const args = ['import', 'many.ndjson.gz', '--rejects', 'bad', '--create']
    const { exitCode, stderr } = await run(args, { folder })
    const rejects = readFileSync(join(folder, 'bad'), 'utf8').trimEnd().split('\n')
    assert.equal(rejects.length, 100_000)
    assert.equal(JSON.parse(rejects.at(-1) as string).line, 100_001)
    assert.match(stderr, /bad ends here: it has 100,000 lines\./)
    assert.match(stderr, /100,010 invalid/)
    assert.equal(exitCode, 65)
  })

  it('replaces the rejects of an earlier import', async () => {
    const folder = newFolder()
    const args = ['import', '-', '--format', 'ndjson', '--rejects', 'bad', '--create']
    await run(args, { folder, input: '{"id":1}\n{"id":2}\n' })
    await run(args, { folder, input: '{"id":3}\n' })
    const rejects = readFileSync(join(folder, 'bad'), 'utf8').trimEnd().split('\n')
    assert.deepEqual(
      rejects.map((line) => JSON.parse(line).text),
      ['{"id":3}'],
    )
  })
})
