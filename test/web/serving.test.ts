import assert from 'node:assert/strict'
import { before, describe, it } from 'node:test'
import { gunzipSync } from 'node:zlib'
import { buildOwnHosts } from '../../src/http/protocol.ts'
import { buildAssets } from '../../web/assets.ts'
import { joinModules } from '../../web/join.ts'
import { browserMissing, startBrowser } from '../support/browser.ts'
import { startService, type TestService } from '../support/service.ts'

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
      const linked = [...text.matchAll(/(?:href|src)="([^"]+)"/g)].map(([, link = '']) => link)
      assert.notDeepEqual(linked, [], name)
      assert.deepEqual(
        linked.filter((link) => !names.has(link)),
        [],
      )
      assert.doesNotMatch(text, /<style|<script(?! type="module" src)|\son\w+=|\sstyle=/)
    }
  })

  it('never make markup out of text', () => {
    const scripts = assets.filter(({ name }) => name.endsWith('.js'))
    for (const { bytes } of scripts) {
      assert.doesNotMatch(
        String(bytes),
        /innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval\(/,
      )
    }
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

describe('a foreign Host', () => {
  let service: TestService
  let port: string
  before(async () => {
    service = await startService('sqlite::memory:', {
      env: { PUBLIC_URL: 'https://plants.example/x' },
    })
    port = new URL(service.url).port
  })

  const browser = { 'User-Agent': 'Mozilla/5.0 (X11; Linux x86_64)' }
  const cases: [what: string, host: string, headers: Record<string, string>, isRefused: boolean][] =
    [
      ['a browser', 'evil.example', browser, true],
      ['a browser that says how it fetches', 'evil.example', { 'Sec-Fetch-Site': 'none' }, true],
      ['a page of that host', 'evil.example:80', { Origin: 'http://evil.example:80' }, true],
      ['a browser, with a trailing dot', 'evil.example.', browser, true],
      ['a browser, with a name like ours', 'localhost.evil.example', browser, true],
      ['a browser, with the start of an address', '127.0.0.1.evil.example', browser, true],
      ['a program', 'evil.example', { 'User-Agent': 'curl/8.5.0' }, false],
      ['a program without a name', 'balancer-7', {}, false],
      ['the fetch of Node.js', 'plant-store', { 'Sec-Fetch-Mode': 'cors' }, false],
      [
        'a page of another origin',
        'evil.example',
        { ...browser, Origin: 'https://app.example' },
        false,
      ],
      ['a browser, by the public address', 'plants.example', browser, false],
      ['a browser, by the name of this machine', 'LOCALHOST:81', browser, false],
      ['a browser, by an address', '192.0.2.7', browser, false],
      ['a browser, by an IPv6 address', '[::1]:3000', browser, false],
      ['a browser, by a name below localhost', 'plants.localhost', browser, false],
    ]
  for (const [what, host, headers, isRefused] of cases) {
    it(`is ${isRefused ? 'refused' : 'no matter'}: ${what} with ${host}`, async () => {
      for (const path of ['/', '/plants', '/healthz']) {
        const { status, body } = await service.call({ path, headers: { ...headers, Host: host } })
        assert.equal(status, isRefused ? 400 : 200, `${path}: ${body.slice(0, 200)}`)
        if (isRefused) assert.match(body, /"error":40000.*PUBLIC_URL/)
      }
    })
  }

  it('is not the name of this machine, in whatever case that is set', () => {
    const isOwn = buildOwnHosts({ host: 'Greenhouse', publicUrl: undefined })
    assert.equal(isOwn('greenhouse:3000'), true)
    assert.equal(isOwn('house:3000'), false)
  })

  it('is refused when a real browser is led here', { skip: browserMissing }, async () => {
    const started = await startBrowser()
    const context = await started.newContext({ proxy: { server: service.url } })
    const page = await context.newPage()
    // A request through a proxy has the Host of the page, like one after DNS rebinding.
    const response = await page.goto(`http://evil.example:${port}/`)
    assert.equal(response?.status(), 400)
    await context.close()
  })
})
