import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { describe, it } from 'node:test'
import { preload, runProcess } from '../support/command.ts'
import { newFolder } from '../support/folder.ts'
import { ends, endsWith } from './ends.ts'

const readRoot = (name: string) => readFileSync(new URL(`../../${name}`, import.meta.url), 'utf8')

describe('plant-store', () => {
  const folder = newFolder()
  it('refuses a Node.js that is too old, with what to do', async () => {
    const older = "Object.defineProperty(process, 'versions', { value: { node: '24.18.0' } })"
    const env = { NODE_OPTIONS: preload(older) }
    const said =
      /^plant-store needs Node\.js 24\.18\.1 or newer, but this is 24\.18\.0\..*npm ci[^\n]*\n$/
    await endsWith(runProcess(['--version'], { folder, env }), 78, said)
  })

  it('says its version', async () => {
    const shown = await endsWith(runProcess(['--version'], { folder }), 0, '')
    assert.equal(shown, `${JSON.parse(readRoot('package.json')).version}\n`)
  })

  it('shows its help on standard error if it is given no command', async () => {
    const help = await ends('--help', 0, '', folder)
    assert.equal(await ends([], 64, help, folder), '')
  })

  it('prints the document that is committed', async () => {
    assert.equal(await ends('openapi', 0, '', folder), readRoot('openapi.json'))
  })
})

describe('plant-store help', () => {
  const folder = newFolder()

  for (const name of ['', 'serve', 'token', 'token create', 'webhook list', 'openapi', 'copy']) {
    const path = name.split(' ').filter((word) => word !== '')
    it(`shows the help of the command itself, in 80 columns: help ${name}`, async () => {
      const shown = await ends(['help', ...path], 0, '', folder)
      assert.equal(await ends([...path, '--help'], 0, '', folder), shown)
      assert.match(shown, new RegExp(`^Usage: ${['plant-store', ...path].join(' ')} `))
      assert.doesNotMatch(shown, /^.{81}/m)
    })
  }

  for (const line of ['help --help', 'help -h', 'help token --help']) {
    it(`takes an option for no command: ${line}`, async () => {
      const [, path = ''] = /^help (\w*)/.exec(line) ?? []
      assert.equal(
        await ends(line, 0, '', folder),
        await ends(`help ${path}`.trim(), 0, '', folder),
      )
    })
  }

  it('names every flag and variable of the settings, and a store in memory for serve alone', async () => {
    const [, settings = ''] = /^## Settings\n(.+?)^## /ms.exec(readRoot('docs/running.md')) ?? []
    const names = settings.match(/^\| `[^|]+/gm)?.flatMap((cell) => cell.match(/[A-Z_]{4,}/g))
    assert.ok(names !== undefined && names.length > 15, `${names}`)
    const stdout = await ends('help serve', 0, '', folder)
    for (const name of [...names, 'sqlite::memory:'])
      assert.ok(stdout.includes(`${name}`), `${name}`)
    const flags = stdout.match(/(?<=^ {2})--[\w-]+/gm)?.toSorted()
    assert.deepEqual(settings.match(/--[\w-]+(?=`\))/g)?.toSorted(), flags)
    assert.doesNotMatch(await ends('help export', 0, '', folder), /memory/)
  })
})

const folder = newFolder()

// A slash at the end goes, because paths begin with one.
for (const url of ['/', '/api', 'https://plants.example/api', 'https://plants.example/api/']) {
  it(`plant-store openapi --url takes ${url}`, async () => {
    const stdout = await ends(`openapi --url ${url}`, 0, '', folder)
    assert.equal(JSON.parse(stdout).servers[0].url, url.replace(/(?<=.)\/$/, ''))
  })
}
