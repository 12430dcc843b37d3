import assert from 'node:assert/strict'
import { chmodSync, existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, it } from 'node:test'
import { gzipSync } from 'node:zlib'
import { run, start } from '../support/command.ts'
import { engines } from '../support/engines.ts'
import { newFolder } from '../support/folder.ts'
import { operatorToken, startService } from '../support/service.ts'

const three =
  '{"id":1,"name":"one"}\n{"id":2,"name":"two","tag":""}\n{"id":9223372036854775807,"name":"🌵"}\n'
const otherTwo = '{"id":2,"name":"zwei"}\n'

for (const engine of engines) {
  describe(`plant-store import, into ${engine.name}`, async () => {
    async function newPlace() {
      const folder = newFolder()
      const options = { folder, env: { DATABASE_URL: await engine.newUrl() } }
      const importText = (input: string | Buffer, ...flags: string[]) =>
        run(['import', '-', '--format', 'ndjson', ...flags], { ...options, input })
      const readAll = async () => (await run(['export', '--quiet'], options)).stdout
      return { folder, options, importText, readAll }
    }

    it('stores every plant, and finds all of them there when it is run again', async () => {
      const { folder, options, readAll } = await newPlace()
      writeFileSync(join(folder, 'plants.ndjson'), three)
      const first = await run(['import', 'plants.ndjson'], options)
      assert.equal(first.exitCode, 0)
      assert.match(first.stderr, /^Imported: 3 stored \(/)
      assert.equal(await readAll(), three)
      const second = await run(['import', 'plants.ndjson'], options)
      assert.equal(second.exitCode, 0)
      assert.match(second.stderr, /^Imported: 0 stored, 3 already there \(/)
    })

    it('reads CSV, and what is gzipped', async () => {
      const { folder, options, readAll } = await newPlace()
      writeFileSync(
        join(folder, 'plants.csv.gz'),
        gzipSync('id,name,tag\n1,one,\n2,two,""\n9223372036854775807,🌵,\n'),
      )
      assert.equal((await run(['import', 'plants.csv.gz'], options)).exitCode, 0)
      assert.equal(await readAll(), three)
    })

    it('keeps the plant that is there, says so, and ends with 65', async () => {
      const { importText, readAll } = await newPlace()
      await importText(three)
      const { exitCode, stderr } = await importText(otherTwo)
      assert.equal(exitCode, 65)
      assert.match(
        stderr,
        /^line 1: A plant with this id and another content is there; .*\nImported: 0 stored, 1 in conflict/,
      )
      assert.equal(await readAll(), three)
    })

    it('skips or replaces where that is wanted', async () => {
      const { importText, readAll } = await newPlace()
      await importText(three)
      const skipped = await importText(otherTwo, '--on-conflict', 'skip')
      assert.equal(skipped.exitCode, 0)
      assert.match(skipped.stderr, /1 kept as they were/)
      const replaced = await importText(otherTwo, '--on-conflict', 'replace')
      assert.equal(replaced.exitCode, 0)
      assert.match(replaced.stderr, /1 replaced/)
      assert.equal(await readAll(), three.replace('"two","tag":""', '"zwei"'))
    })

    it('goes on behind a bad line, and writes it down with its number and the reason', async () => {
      const { folder, importText, readAll } = await newPlace()
      const text = `{"id":1,"name":"one"}\n{"id":"2","name":"two"}\n\n{"id":4,"name":"four"}\nno JSON\n`
      const { exitCode, stderr } = await importText(text, '--rejects', 'bad.ndjson')
      assert.equal(exitCode, 65)
      assert.match(stderr, /^Imported: 2 stored, 2 invalid \(.*\)\. See bad\.ndjson/)
      const rejects = readFileSync(join(folder, 'bad.ndjson'), 'utf8').trimEnd().split('\n')
      assert.deepEqual(
        rejects.map((line) => JSON.parse(line)).map((reject) => [reject.line, reject.text]),
        [
          [2, '{"id":"2","name":"two"}'],
          [5, 'no JSON'],
        ],
      )
      assert.match(rejects[0] ?? '', /must be an integer/)
      assert.equal(await readAll(), '{"id":1,"name":"one"}\n{"id":4,"name":"four"}\n')
    })

    it('brings plants into a running service with a token', async () => {
      const service = await startService(await engine.newUrl())
      const folder = newFolder()
      const flags = ['import', '-', '--format', 'ndjson', '--url', service.url]
      const env = { PLANT_STORE_TOKEN: operatorToken }
      const first = await run(flags, { folder, env, input: `${three}{"id":1,"name":"uno"}\n` })
      assert.match(first.stderr, /line 4: .*another content.*\nImported: 3 stored, 1 in conflict/s)
      assert.equal(first.exitCode, 65)
      const again = await run([...flags, '--on-conflict', 'replace'], {
        folder,
        env,
        input: three + otherTwo,
      })
      assert.match(again.stderr, /Imported: 0 stored, 3 already there, 1 replaced/)
      assert.equal(again.exitCode, 0)
      const stored = await service.call({ path: '/plants' })
      assert.equal(
        stored.body,
        '[{"id":1,"name":"one"},{"id":2,"name":"zwei"},{"id":9223372036854775807,"name":"🌵"}]',
      )
    })

    it('stops at Ctrl-C, says how to go on, and ends the same when it is run again', async () => {
      const { folder, options, readAll } = await newPlace()
      const lines = Array.from(
        { length: 200_000 },
        (_, id) => `{"id":${id},"name":"plant ${id}"}\n`,
      ).join('')
      writeFileSync(join(folder, 'many.ndjson'), lines)
      const running = start(['import', 'many.ndjson'], options)
      while ((await readAll()) === '') if (running.child.exitCode !== null) break
      running.child.kill('SIGINT')
      const { exitCode, stderr } = await running.ended
      assert.equal(exitCode, 130, stderr)
      assert.match(
        stderr,
        /^Imported so far: [\d,]+ stored .*\nStopped after line \d+\. Run the same command again/,
      )
      assert.equal((await run(['import', 'many.ndjson'], options)).exitCode, 0)
      assert.ok((await readAll()) === lines)
    })
  })
}

/** What is asked for, what comes, and how it ends. */
const mistakes: [
  title: string,
  args: string[],
  input: string,
  exitCode: number,
  message: RegExp,
][] = [
  [
    'a file that is not there',
    ['missing.csv'],
    '',
    66,
    /^Cannot read missing\.csv: there is no such file/,
  ],
  ['a folder', ['.', '--format', 'csv'], '', 66, /^Cannot read \.: it is a folder/],
  ['a name that says no format', ['plants.txt'], '', 78, /--format ndjson or csv/],
  ['a format that is unknown', ['-', '--format', 'xml'], '', 78, /^--format must be ndjson or csv/],
  [
    'a way to handle conflicts that is unknown',
    ['-', '--on-conflict', 'merge'],
    '',
    64,
    /Allowed choices are fail, skip, replace/,
  ],
  [
    'a missing column',
    ['-', '--format', 'csv'],
    'id\n1\n',
    65,
    /^line 1: the header names no column "name"/,
  ],
  [
    'a file that is something else',
    ['-', '--format', 'ndjson'],
    'id,name\n1,a\n',
    65,
    /^line 1: this is not NDJSON/,
  ],
  [
    'a place for rejects that is not there',
    ['-', '--format', 'csv', '--rejects', 'no/where'],
    'id,name\n',
    73,
    /^Cannot write --rejects no\/where/,
  ],
  [
    'an address that is none',
    ['-', '--format', 'csv', '--url', 'plants', '--token', 'x'],
    'id,name\n',
    78,
    /^--url must be/,
  ],
  [
    'an address without a token',
    ['-', '--format', 'csv', '--url', 'http://127.0.0.1:1'],
    'id,name\n',
    78,
    /^--url needs a token/,
  ],
  [
    'a store in memory',
    ['-', '--format', 'csv', '--database', 'sqlite::memory:'],
    'id,name\n',
    78,
    /^A store in memory/,
  ],
]

describe('plant-store import ends with one clear line for', () => {
  for (const [title, args, input, exitCode, message] of mistakes) {
    it(title, async () => {
      const result = await run(['import', ...args], { folder: newFolder(), input })
      assert.match(result.stderr, message)
      assert.equal(result.exitCode, exitCode)
    })
  }

  it('a place for rejects that holds something else, which stays as it is', async () => {
    const folder = newFolder()
    writeFileSync(join(folder, 'plants.csv'), 'id,name\n1,a\n')
    const args = ['import', 'plants.csv', '--rejects']
    for (const taken of ['plants.csv', 'data/plant-store.db']) {
      if (taken !== 'plants.csv') await run(['import', 'plants.csv'], { folder })
      const before = readFileSync(join(folder, taken))
      const { exitCode, stderr } = await run([...args, taken], { folder })
      assert.match(stderr, /is a file with something else in it, and was not touched/)
      assert.equal(exitCode, 73)
      assert.deepEqual(readFileSync(join(folder, taken)), before)
    }
  })

  it('rejects of the import before: they make room for the new ones', async () => {
    const folder = newFolder()
    const args = ['import', '-', '--format', 'ndjson', '--rejects', 'bad']
    await run(args, { folder, input: '{"id":1}\n{"id":2}\n' })
    await run(args, { folder, input: '{"id":3}\n' })
    const rejects = readFileSync(join(folder, 'bad'), 'utf8').trimEnd().split('\n')
    assert.deepEqual(
      rejects.map((line) => JSON.parse(line).text),
      ['{"id":3}'],
    )
  })

  it('a disk without space for rejects', {
    skip: !existsSync('/dev/full') && 'there is no /dev/full',
  }, async () => {
    const args = ['import', '-', '--format', 'ndjson', '--rejects', '/dev/full']
    const { exitCode, stderr } = await run(args, { folder: newFolder(), input: '{"id":1}\n' })
    assert.equal(stderr, 'Cannot write --rejects /dev/full: the disk is full.\n')
    assert.equal(exitCode, 73)
  })

  for (const [signal, code] of [
    ['SIGINT', 130],
    ['SIGTERM', 143],
  ] as const) {
    it(`${signal}, also while nothing comes over standard input`, async () => {
      const folder = newFolder()
      const args = ['import', '-', '--format', 'csv']
      const running = start(args, { folder, input: 'id,name\n1,a\n', isInputOpen: true })
      const database = join(folder, 'data/plant-store.db')
      while (!existsSync(`${database}-wal`)) await new Promise((resolve) => setTimeout(resolve, 10))
      running.child.kill(signal)
      const { exitCode, stderr } = await running.ended
      assert.match(
        stderr,
        /^Imported so far: 0 stored .*\nStopped after line 0\. Run the same command again/,
      )
      assert.equal(exitCode, code)
    })
  }

  it('nothing at all when the service has a rate limit: it keeps to it', async () => {
    const service = await startService('sqlite::memory:', { env: { RATE_LIMIT: '10/s' } })
    const input = Array.from({ length: 25 }, (_, id) => `{"id":${id},"name":"a"}\n`).join('')
    const args = ['import', '-', '--format', 'ndjson', '--url', service.url]
    const env = { PLANT_STORE_TOKEN: operatorToken }
    const { exitCode, stderr } = await run(args, { folder: newFolder(), env, input })
    assert.match(stderr, /^Imported: 25 stored/)
    assert.equal(exitCode, 0)
  })

  it('a token that is refused', async () => {
    const service = await startService('sqlite::memory:')
    const args = ['import', '-', '--format', 'ndjson', '--url', service.url, '--token', 'wrong']
    const { exitCode, stderr } = await run(args, { folder: newFolder(), input: three })
    assert.match(stderr, /^The service refuses the token: /)
    assert.equal(stderr.includes('wrong'), false)
    assert.equal(exitCode, 77)
  })

  const isRoot = process.getuid?.() === 0
  it('a file that may not be read', { skip: isRoot && 'root may read everything' }, async () => {
    const folder = newFolder()
    writeFileSync(join(folder, 'plants.csv'), 'id,name\n')
    chmodSync(join(folder, 'plants.csv'), 0)
    const { exitCode, stderr } = await run(['import', 'plants.csv'], { folder })
    assert.match(stderr, /^Cannot read plants\.csv: no permission/)
    assert.equal(exitCode, 66)
  })
})
