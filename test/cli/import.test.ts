import assert from 'node:assert/strict'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, it } from 'node:test'
import { gzipSync } from 'node:zlib'
import { run, start } from '../support/command.ts'
import { engines } from '../support/engines.ts'
import { newFolder } from '../support/folder.ts'
import { waitUntil } from '../support/wait.ts'

const three =
  '{"id":1,"name":"one"}\n{"id":2,"name":"two","tag":""}\n{"id":9223372036854775807,"name":"🌵"}\n'
const otherTwo = '{"id":2,"name":"zwei"}\n'

for (const engine of engines) {
  describe(`plant-store import, into ${engine.name}`, async () => {
    async function newStore() {
      const folder = newFolder()
      const options = { folder, env: { DATABASE_URL: await engine.newUrl() } }
      const importText = (input: string | Buffer, ...flags: string[]) =>
        run(['import', '-', '--format', 'ndjson', ...flags], { ...options, input })
      // On a machine that is very busy, an export can miss the time limits of the store.
      const readAll = async (attempts = 3): Promise<string> => {
        const { exitCode, stdout, stderr } = await run(['export', '--quiet'], options)
        if (exitCode !== 0 && attempts > 1) return readAll(attempts - 1)
        assert.equal(exitCode, 0, stderr)
        return stdout
      }
      return { folder, options, importText, readAll }
    }

    it('stores every plant, and recognises all of them when it runs again', async () => {
      const { folder, options, readAll } = await newStore()
      writeFileSync(join(folder, 'plants.ndjson'), three)
      const first = await run(['import', 'plants.ndjson'], options)
      assert.equal(first.exitCode, 0)
      assert.match(first.stderr, /^Imported into \S+: 3 stored \(/)
      assert.equal(await readAll(), three)
      const second = await run(['import', 'plants.ndjson'], options)
      assert.equal(second.exitCode, 0)
      assert.match(second.stderr, /^Imported into \S+: 0 stored, 3 already there \(/)
    })

    it('reads gzipped CSV', async () => {
      const { folder, options, readAll } = await newStore()
      writeFileSync(
        join(folder, 'plants.csv.gz'),
        gzipSync('id,name,tag\n1,one,\n2,two,""\n9223372036854775807,🌵,\n'),
      )
      assert.equal((await run(['import', 'plants.csv.gz'], options)).exitCode, 0)
      assert.equal(await readAll(), three)
    })

    it('keeps a plant with different content, says so, and ends with 65', async () => {
      const { importText, readAll } = await newStore()
      await importText(three)
      const { exitCode, stderr } = await importText(otherTwo)
      assert.equal(exitCode, 65)
      assert.match(
        stderr,
        /^line 1: .*a plant with this id and different content.*\nImported into \S+: 0 stored, 1 in conflict/,
      )
      assert.equal(await readAll(), three)
    })

    it('skips or replaces plants where --on-conflict says so', async () => {
      const { importText, readAll } = await newStore()
      await importText(three)
      const skipped = await importText(otherTwo, '--on-conflict', 'skip')
      assert.equal(skipped.exitCode, 0)
      assert.match(skipped.stderr, /1 skipped/)
      const replaced = await importText(otherTwo, '--on-conflict', 'replace')
      assert.equal(replaced.exitCode, 0)
      assert.match(replaced.stderr, /1 replaced/)
      assert.equal(await readAll(), three.replace('"two","tag":""', '"zwei"'))
    })

    it('continues after a bad line, which it writes down with its number and the reason', async () => {
      const { folder, importText, readAll } = await newStore()
      const text = `{"id":1,"name":"one"}\n{"id":"2","name":"two"}\n\n{"id":4,"name":"four"}\nno JSON\n`
      const { exitCode, stderr } = await importText(text, '--rejects', 'bad.ndjson')
      assert.equal(exitCode, 65)
      assert.match(
        stderr,
        /^Imported into \S+: 2 stored, 2 invalid \(.*\)\. The rejected lines are in bad\.ndjson\./,
      )
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

    it('stops at Ctrl-C, says how to continue, and completes when it runs again', async () => {
      const { folder, options, readAll } = await newStore()
      const lines = Array.from(
        { length: 20_000 },
        (_, id) => `{"id":${id},"name":"plant ${id}"}\n`,
      ).join('')
      writeFileSync(join(folder, 'many.ndjson'), lines)
      const running = start(['import', '-', '--format', 'ndjson'], {
        ...options,
        input: lines.slice(0, -1),
        isInputOpen: true,
      })
      const store = await engine.open(options.env.DATABASE_URL)
      const isStored = async () => (await store.getPlant(0n)) !== undefined
      await waitUntil(isStored, 'the first plant is stored')
      running.child.kill('SIGINT')
      const { exitCode, stderr } = await running.ended
      assert.equal(exitCode, 130, stderr)
      const [, said = '', line] =
        /^Imported so far into \S+: ([\d,]+) stored .*\nStopped after line (\d+)\. Run the same command again/.exec(
          stderr,
        ) ?? []
      const stored = (await readAll()).split('\n').length - 1
      assert.equal(said, stored.toLocaleString('en'), stderr)
      assert.equal(Number(line), stored)
      assert.equal((await run(['import', 'many.ndjson'], options)).exitCode, 0)
      assert.ok((await readAll()) === lines)
    })
  })
}
