import assert from 'node:assert/strict'
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, it } from 'node:test'
import { run, start } from '../support/command.ts'
import { engines } from '../support/engines.ts'
import { newFolder } from '../support/folder.ts'

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
  describe(`plant-store serve on ${engine.name}`, () => {
    const workers = engine.name === 'PostgreSQL' ? [[], ['--workers', '2']] : [[]]
    for (const args of workers) {
      it(`says that it has made a new store, once: serve ${args.join(' ')}`, async () => {
        const url = await engine.newUrl()
        const first = await serveOnce(url, ...args)
        assert.match(first, /^ {2}store {5}\S+ \(new: there was none\)$/m)
        assert.match(first, /"msg":"made a new, empty store: there was none"/)
        const second = await serveOnce(url, ...args)
        assert.match(second, /^ {2}store {5}\S+$/m)
        assert.doesNotMatch(second, /there was none/)
      })

      it(`refuses to make one with --must-exist: serve ${args.join(' ')}`, async () => {
        const url = await engine.newUrl()
        const folder = newFolder()
        const options = { folder, env: { ...anyPort, DATABASE_URL: url } }
        const { exitCode, stdout, stderr } = await run(['serve', '--must-exist', ...args], options)
        assert.match(stderr, /^There is no store (at|in) [^\n]+\n$/)
        assert.equal(stdout, '')
        assert.equal(exitCode, 78)
        const checked = await run(['check'], options)
        assert.match(
          checked.stdout + checked.stderr,
          /no store was made here yet|There is no store/,
        )
        await (await engine.open(url)).close()
        assert.match(await serveOnce(url, '--must-exist', ...args), /^ {2}store {5}\S+$/m)
      })
    }
  })
}

describe('plant-store serve --must-exist', () => {
  it('makes no folder and no file', async () => {
    const folder = newFolder()
    const env = { ...anyPort, DATABASE_URL: 'sqlite:no/such/folder/plants.db' }
    const { exitCode } = await run(['serve', '--must-exist'], { folder, env })
    assert.equal(exitCode, 78)
    assert.deepEqual(readdirSync(folder), [])
  })

  it('refuses an empty file and a store in memory', async () => {
    const folder = newFolder()
    writeFileSync(join(folder, 'empty.db'), '')
    for (const path of ['empty.db', ':memory:']) {
      const env = { ...anyPort, DATABASE_URL: `sqlite:${path}` }
      const { exitCode, stderr } = await run(['serve', '--must-exist'], { folder, env })
      assert.match(stderr, /^(There is no store at \S+empty\.db|A store in memory)[^\n]*\n$/)
      assert.equal(exitCode, 78)
    }
    assert.deepEqual(readdirSync(folder), ['empty.db'])
  })
})

describe('plant-store help', () => {
  const folder = newFolder()

  for (const path of [[], ['serve'], ['token'], ['token', 'create'], ['webhook', 'list']]) {
    it(`shows the help of the command itself: help ${path.join(' ')}`, async () => {
      const wanted = await run([...path, '--help'], { folder })
      const { exitCode, stdout, stderr } = await run(['help', ...path], { folder })
      assert.equal(stdout, wanted.stdout)
      assert.match(stdout, new RegExp(`^Usage: ${['plant-store', ...path].join(' ')} `))
      assert.deepEqual([exitCode, stderr], [0, ''])
    })
  }

  it('names every flag and variable of the settings, and a store in memory for serve alone', async () => {
    const docs = readFileSync(new URL('../../docs/running.md', import.meta.url), 'utf8')
    const [, settings = ''] = /^## Settings\n(.+?)^## /ms.exec(docs) ?? []
    const names = settings.match(/^\| `[^|]+/gm)?.flatMap((cell) => cell.match(/[A-Z_]{4,}/g))
    assert.ok(names !== undefined && names.length > 15, `${names}`)
    const { stdout } = await run(['help', 'serve'], { folder })
    for (const name of [...names, 'sqlite::memory:'])
      assert.ok(stdout.includes(`${name}`), `${name}`)
    const flags = stdout.match(/(?<=^ {2})--[\w-]+/gm)?.toSorted()
    assert.deepEqual(settings.match(/--[\w-]+(?=`\))/g)?.toSorted(), flags)
    const listing = await run(['help', 'export'], { folder })
    assert.doesNotMatch(listing.stdout, /memory/)
  })
})

describe('plant-store openapi --url', () => {
  const folder = newFolder()

  for (const url of ['/', '/api', 'https://plants.example/api']) {
    it(`takes ${url}`, async () => {
      const { exitCode, stdout } = await run(['openapi', '--url', url], { folder })
      assert.equal(exitCode, 0)
      assert.equal(JSON.parse(stdout).servers[0].url, url)
    })
  }

  it('drops a slash at the end, because paths begin with one', async () => {
    const { stdout } = await run(['openapi', '--url', 'https://plants.example/api/'], { folder })
    assert.equal(JSON.parse(stdout).servers[0].url, 'https://plants.example/api')
  })
})
