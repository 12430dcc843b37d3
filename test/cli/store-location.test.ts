import assert from 'node:assert/strict'
import { existsSync, readdirSync, realpathSync } from 'node:fs'
import { join } from 'node:path'
import { describe, it } from 'node:test'
import { run } from '../support/command.ts'
import { newFolder } from '../support/folder.ts'

const input = '{"id":1,"name":"a"}\n'
const commands = [
  ['token', 'create', '--name', 'Ada'],
  ['import', '-', '--format', 'ndjson'],
]

for (const command of commands) {
  const title = command.slice(0, command[0] === 'token' ? 2 : 1).join(' ')
  describe(`plant-store ${title}`, () => {
    it('makes no store at the default path, and says how to name or make one', async () => {
      const folder = realpathSync(newFolder())
      const { exitCode, stdout, stderr } = await run(command, { folder, input })
      assert.equal(
        stderr,
        `There is no store at ${folder}/data/plant-store.db. Run the command in the folder of the service, name the store with --database or DATABASE_URL, or make a new one with --create.\n`,
      )
      assert.equal(stdout, '')
      assert.equal(exitCode, 78)
      assert.deepEqual(readdirSync(folder), [])
    })

    it('makes a store with --create, and names it on standard error', async () => {
      const folder = realpathSync(newFolder())
      const { exitCode, stderr } = await run([...command, '--create'], { folder, input })
      assert.equal(exitCode, 0)
      assert.ok(stderr.includes(`sqlite:${folder}/data/plant-store.db`), stderr)
      assert.ok(existsSync(join(folder, 'data/plant-store.db')))
    })

    const named: [title: string, flags: string[], env: Record<string, string>][] = [
      ['--database', ['--database', 'sqlite:my/plants.db'], {}],
      ['DATABASE_URL', [], { DATABASE_URL: 'sqlite:my/plants.db' }],
    ]
    for (const [by, flags, env] of named) {
      it(`makes a store that ${by} names, and names it on standard error`, async () => {
        const folder = realpathSync(newFolder())
        const { exitCode, stderr } = await run([...command, ...flags], { folder, env, input })
        assert.equal(exitCode, 0)
        assert.ok(stderr.includes(`sqlite:${folder}/my/plants.db`), stderr)
        assert.deepEqual(readdirSync(folder), ['my'])
      })
    }
  })
}

describe('a command that only reads a store', () => {
  for (const command of ['export', 'token list', 'token revoke tok_a', 'token prune', 'backup b']) {
    it(`makes none: ${command}`, async () => {
      const folder = realpathSync(newFolder())
      const { exitCode, stderr } = await run(command.split(' '), { folder })
      assert.equal(
        stderr,
        `There is no store at ${folder}/data/plant-store.db. Run the command in the folder of the service, or name the store with --database or DATABASE_URL.\n`,
      )
      assert.equal(exitCode, 78)
      assert.deepEqual(readdirSync(folder), [])
    })
  }
})
