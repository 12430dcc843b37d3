import assert from 'node:assert/strict'
import { existsSync, readdirSync, readFileSync, realpathSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, it } from 'node:test'
import { run } from '../support/command.ts'
import { postgres } from '../support/engines.ts'
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

const readers = [
  'export',
  'log',
  'token list',
  'token revoke tok_a',
  'token prune',
  'webhook list',
  'webhook pause whk_a',
]

describe('a store that cannot be used', () => {
  const wrong = 'postgres://127.0.0.1/?x=y'
  const named: [setting: string, args: string[], env: Record<string, string>][] = [
    ['--database', ['--database', wrong], { DATABASE_URL: 'sqlite:other.db' }],
    ['DATABASE_URL', [], { DATABASE_URL: wrong }],
  ]
  for (const [setting, args, env] of named) {
    for (const command of [...readers, 'check', 'serve']) {
      it(`is named as the operator did, by ${setting}: ${command}`, async () => {
        const words = [...command.split(' '), ...args]
        const { exitCode, stderr } = await run(words, { folder: newFolder(), env })
        assert.match(stderr, new RegExp(`^${setting} has an unknown parameter x: [^\\n]*\\n$`))
        assert.equal(exitCode, 78)
      })
    }
  }
})

describe('a command that only reads a store', () => {
  for (const command of readers) {
    it(`makes none in an empty file: ${command}`, async () => {
      const folder = newFolder()
      writeFileSync(join(folder, 'empty.db'), '')
      const env = { DATABASE_URL: 'sqlite:empty.db' }
      const { exitCode, stderr } = await run(command.split(' '), { folder, env })
      assert.match(stderr, /^There is no store at \S+empty\.db\. Run the command[^\n]*\n$/)
      assert.equal(exitCode, 78)
      assert.deepEqual(readdirSync(folder), ['empty.db'])
      assert.equal(readFileSync(join(folder, 'empty.db'), 'utf8'), '')
    })
  }

  it('makes none in an empty database of PostgreSQL', async () => {
    const env = { DATABASE_URL: await postgres.newUrl() }
    const folder = newFolder()
    const copy = ['copy', '--from', env.DATABASE_URL, '--to', 'sqlite:copy.db']
    for (const args of [...readers.map((command) => command.split(' ')), copy]) {
      const { exitCode, stderr } = await run(args, { folder, env })
      assert.match(stderr, /^(--from: t|T)here is no store at postgres:[^\n]*\n$/, `${args}`)
      assert.equal(exitCode, 78)
    }
    assert.match((await run(['check'], { folder, env })).stdout, /no store was made here yet/)
    assert.deepEqual(readdirSync(folder), [])
  })

  for (const command of [...readers, 'check', 'backup b']) {
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
