import assert from 'node:assert/strict'
import { join } from 'node:path'
import { before, describe, it } from 'node:test'
import { createContext, runInContext } from 'node:vm'
import { gzipSync } from 'node:zlib'
import { build } from 'esbuild'

const mostBytes = 6 * 1024

describe('the client as a bundle', () => {
  let code: string
  before(async () => {
    const { outputFiles } = await build({
      entryPoints: [join(import.meta.dirname, '..', '..', 'client', 'index.ts')],
      bundle: true,
      minify: true,
      write: false,
      format: 'iife',
      globalName: 'client',
      // A module of Node.js, or a package, would be an error.
      platform: 'browser',
    })
    code = outputFiles[0]?.text ?? ''
  })

  it('has at most 6 KB, minified and gzipped', (test) => {
    const bytes = gzipSync(code, { level: 9 }).length
    test.diagnostic(`${bytes} bytes`)
    assert.ok(bytes <= mostBytes, `${bytes} bytes`)
  })

  it('only defines things when it is imported: it touches nothing of the runtime', () => {
    const touched: string[] = []
    const names = Object.getOwnPropertyNames(globalThis).filter((name) => !(name in language))
    const context = createContext({})
    for (const name of names) {
      Object.defineProperty(context, name, { get: () => touched.push(name), configurable: true })
    }
    runInContext(code, context)
    assert.deepEqual(touched, [])
    assert.equal(runInContext('typeof client.PlantStore', context), 'function')
  })
})

/** The objects of the language itself, which every context has. */
const language = runInContext(
  'Object.fromEntries(Object.getOwnPropertyNames(globalThis).map((name) => [name, true]))',
  createContext({}),
)
