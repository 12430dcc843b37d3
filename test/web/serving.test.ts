import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { describe, it } from 'node:test'
import { gunzipSync } from 'node:zlib'
import { buildAssets } from '../../web/assets.ts'
import { joinModules } from '../../web/join.ts'

describe('the files of the web pages', () => {
  const assets = [...buildAssets().values()]

  it('are sent as they are, compressed, with a name that holds their hash', () => {
    for (const { name, bytes, gzipped, hash } of assets) {
      assert.deepEqual(gunzipSync(gzipped), bytes)
      assert.ok(name.endsWith('.html') || name.includes(hash), name)
    }
  })

  it('refer to nothing that does not exist, and to no other host', () => {
    const names = new Set(assets.map(({ name }) => name))
    for (const { name, bytes } of assets.filter((asset) => asset.name.endsWith('.html'))) {
      const text = String(bytes)
      const linked = [...text.matchAll(/(?:<link.* href|src)="(.+?)"/g)].map(
        ([, link = '']) => link,
      )
      assert.notDeepEqual(linked, [], name)
      const broken = linked.filter((link) => !names.has(link))
      assert.deepEqual(broken, [])
      const foreign = /<style|<script(?! type="module" src)|\son\w+=|\sstyle=|href="https?:/
      assert.doesNotMatch(text, foreign)
    }
  })

  it('show the version of the program beside that of the interface', () => {
    const { version } = JSON.parse(readFileSync('package.json', 'utf8'))
    const reference = assets.find(({ name }) => name === 'reference.html')
    const shown = new RegExp(`program ${RegExp.escape(version)}, interface`)
    assert.match(String(reference?.bytes), shown)
  })

  it('never make markup out of text', () => {
    const unsafe = /innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval\(/
    const scripts = assets.filter(({ name }) => name.endsWith('.js'))
    for (const { bytes } of scripts) assert.doesNotMatch(String(bytes), unsafe)
  })
})

describe('joining modules', () => {
  const join = (modules: Record<string, string>) =>
    joinModules(new URL('file:///a.ts'), (url) => modules[url.pathname.slice(1)] ?? '')

  it('gives each module its own names, and runs it once, before those that import it', () => {
    const script = join({
      'a.ts':
        "import { b as renamed, own } from './b.ts'\nimport { c } from './c.ts'\nconst own2 = own\nlog(renamed, c, own2)",
      'b.ts': "import { c } from './c.ts'\nexport const b = c\nexport const own = 'of b'",
      'c.ts': "const own = 'of c'\nlog('c runs')\nexport function c() {}\n",
    })
    const log: unknown[] = []
    new Function('log', script)((...values: unknown[]) => log.push(...values))
    assert.equal(log[0], 'c runs')
    assert.equal(log[1], log[2])
    assert.equal(log[3], 'of b')
    assert.equal(log.length, 4)
  })

  for (const source of [
    'export default 1',
    "export * from './b.ts'",
    "export { b } from './b.ts'",
    "import b from './b.ts'",
    "import * as b from './b.ts'",
    "import './b.ts'",
    "import { join } from 'node:path'",
    "const b = await import('./b.ts')",
    'export let b = 1',
  ]) {
    it(`refuses what it does not know: ${source}`, () => {
      assert.throws(() => join({ 'a.ts': source }), /cannot be joined/)
    })
  }
})
