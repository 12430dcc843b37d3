import assert from 'node:assert/strict'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, it } from 'node:test'
import { run, start } from '../support/command.ts'
import { engines } from '../support/engines.ts'
import { newFolder } from '../support/folder.ts'
import { waitUntil } from '../support/wait.ts'
import { ends } from './ends.ts'

const three =
  '{"id":1,"name":"one"}\n{"id":2,"name":"two","tag":""}\n{"id":9223372036854775807,"name":"🌵"}\n'
const otherTwo = '{"id":2,"name":"zwei"}\n'

for (const engine of engines) {
  describe(`plant-store import, into ${engine.name}`, async () => {
    async function newStore() {
      const folder = newFolder()
      const options = { folder, env: { DATABASE_URL: await engine.newUrl() } }
      // On a machine that is very busy, an export can miss the time limits of the store.
      const readAll = async (attempts = 3): Promise<string> => {
        const { exitCode, stdout, stderr } = await run(['export', '--quiet'], options)
        if (exitCode !== 0 && attempts > 1) return readAll(attempts - 1)
        assert.equal(exitCode, 0, stderr)
        return stdout
      }
      return { folder, options, readAll }
    }

    it('keeps a plant with different content, or skips or replaces it, as --on-conflict says', async () => {
      const { options, readAll } = await newStore()
      await ends('import - --format ndjson', 0, /./, { ...options, input: three })
      const conflict =
        /^line 1: .*a plant with this id and different content.*\nImported into \S+: 0 stored, 1 in conflict/
      const again = { ...options, input: otherTwo }
      await ends('import - --format ndjson', 65, conflict, again)
      await ends('import - --format ndjson --on-conflict skip', 0, /1 skipped/, again)
      assert.equal(await readAll(), three)
      await ends('import - --format ndjson --on-conflict replace', 0, /1 replaced/, again)
      assert.equal(await readAll(), three.replace('"two","tag":""', '"zwei"'))
    })

    it('continues after a bad line, which it writes down with its number and the reason', async () => {
      const { folder, options, readAll } = await newStore()
      const input = `{"id":1,"name":"one"}\n{"id":"2","name":"two"}\n\n{"id":4,"name":"four"}\nno JSON\n`
      const said =
        /^Imported into \S+: 2 stored, 2 invalid \(.*\)\. The rejected lines are in bad\./
      const line = 'import - --format ndjson --rejects bad.ndjson'
      await ends(line, 65, said, { ...options, input })
      const rejects = readFileSync(join(folder, 'bad.ndjson'), 'utf8')
      assert.match(
        rejects,
        /^{"line":2,"reason":"[^}]*must be an integer[^}]*","text":"{\\"id\\":\\"2\\".*\n/,
      )
      assert.match(rejects, /\n{"line":5,"reason":"[^}]*","text":"no JSON"}\n$/)
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
      await ends('import many.ndjson', 0, /^/, options)
      assert.ok((await readAll()) === lines)
    })
  })
}
