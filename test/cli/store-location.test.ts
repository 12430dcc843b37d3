import assert from 'node:assert/strict'
import { readdirSync, realpathSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { describe, it } from 'node:test'
import { run, start } from '../support/command.ts'
import { engines, postgres } from '../support/engines.ts'
import { newFolder } from '../support/folder.ts'
import { ends } from './ends.ts'
import { readers } from './refused.ts'

const input = '{"id":1,"name":"a"}\n'
const commands = ['token create --name Ada', 'import - --format ndjson']

for (const command of commands) {
  describe(`plant-store ${command}`, () => {
    it('makes no store at the default path, and says how to name or make one', async () => {
      const folder = realpathSync(newFolder())
      const said = `There is no store at ${folder}/data/plant-store.db. Run the command in the folder of the service, name the store with --database or DATABASE_URL, or make a new one with --create.\n`
      assert.equal(await ends(command, 78, said, { folder, input }), '')
      assert.deepEqual(readdirSync(folder), [])
    })

    const own = { DATABASE_URL: 'sqlite:my/plants.db' }
    const named: [by: string, flags: string, env: Record<string, string>, path: string][] = [
      ['--create', ' --create', {}, 'data/plant-store.db'],
      ['--database', ` --database ${own.DATABASE_URL}`, {}, 'my/plants.db'],
      ['DATABASE_URL', '', own, 'my/plants.db'],
    ]
    for (const [by, flags, env, path] of named) {
      it(`makes a store with ${by}, and names it on standard error`, async () => {
        const folder = realpathSync(newFolder())
        const said = new RegExp(RegExp.escape(`sqlite:${folder}/${path}`))
        await ends(command + flags, 0, said, { folder, env, input })
        assert.deepEqual(readdirSync(folder), [dirname(path)])
      })
    }
  })
}

describe('a command that needs a store', () => {
  const wrong = 'postgres://127.0.0.1/?x=y'
  it('names one that cannot be used as the operator did', async () => {
    const env = { DATABASE_URL: wrong, PORT: '0' }
    for (const command of [...readers, 'check', 'serve']) {
      const said = (setting: string) =>
        new RegExp(`^${setting} has an unknown parameter x: [^\\n]*\\n$`)
      await ends(command, 78, said('DATABASE_URL'), { folder: newFolder(), env })
      const named = `${command} --database ${wrong}`
      await ends(named, 78, said('--database'), { folder: newFolder(), env: { PORT: '0' } })
    }
  })

  it('makes none in an empty database of PostgreSQL', async () => {
    const env = { DATABASE_URL: await postgres.newUrl() }
    const folder = newFolder()
    const copy = `copy --from ${env.DATABASE_URL} --to sqlite:copy.db`
    const said = /^(--from: t|T)here is no store at postgres:[^\n]*\n$/
    for (const command of [...readers, copy]) await ends(command, 78, said, { folder, env })
    assert.match(await ends('check', 1, '', { folder, env }), /no store was made yet/)
    assert.deepEqual(readdirSync(folder), [])
  })

  it('makes none at the default path', async () => {
    const folder = realpathSync(newFolder())
    const said = `There is no store at ${folder}/data/plant-store.db. Run the command in the folder of the service, or name the store with --database or DATABASE_URL.\n`
    for (const command of [...readers, 'check', 'backup b']) await ends(command, 78, said, folder)
    assert.deepEqual(readdirSync(folder), [])
  })
})

const anyPort = { PORT: '0' }

/** Starts a service until it has printed its address, and answers what it wrote. */
async function serveOnce(url: string, ...args: string[]): Promise<string> {
  const env = { ...anyPort, DATABASE_URL: url }
  const service = start(['serve', ...args], { folder: newFolder(), env })
  await service.waitFor(/Store a plant/)
  service.child.kill('SIGINT')
  const { stdout, stderr } = await service.ended
  return stdout + stderr
}

for (const engine of engines) {
  const workers = engine.name === 'PostgreSQL' ? [[], ['--workers', '2']] : [[]]
  for (const args of workers) {
    it(`serve ${args.join(' ')} on ${engine.name} makes a store and says so, unless it must exist`, async () => {
      const url = await engine.newUrl()
      const options = { folder: newFolder(), env: { ...anyPort, DATABASE_URL: url } }
      const refusal = /^There is no store (at|in) [^\n]+\n$/
      await ends(['serve', '--must-exist', ...args], 78, refusal, options)
      const checked = await run(['check'], options)
      assert.match(checked.stdout + checked.stderr, /no store was made|There is no store/)
      const first = await serveOnce(url, ...args)
      assert.match(first, /^ {2}store {5}\S+ \(new: there was none\)$/m)
      assert.match(first, /"msg":"made a new, empty store: there was none"/)
      const second = await serveOnce(url, '--must-exist', ...args)
      assert.match(second, /^ {2}store {5}\S+$/m)
      assert.doesNotMatch(second, /there was none/)
    })
  }
}

it('serve --must-exist makes no file, and refuses an empty one and a store in memory', async () => {
  const folder = newFolder()
  writeFileSync(join(folder, 'empty.db'), '')
  for (const path of ['no/such/folder/plants.db', 'empty.db', ':memory:']) {
    const env = { ...anyPort, DATABASE_URL: `sqlite:${path}` }
    const said = /^(There is no store at \S+\.db|A store in memory)[^\n]*\n$/
    await ends('serve --must-exist', 78, said, { folder, env })
  }
  assert.deepEqual(readdirSync(folder), ['empty.db'])
})
