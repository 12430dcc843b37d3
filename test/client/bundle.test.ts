import assert from 'node:assert/strict'
import { join } from 'node:path'
import { it } from 'node:test'
import { gzipSync } from 'node:zlib'
import { build } from 'esbuild'

const mostBytes = 6 * 1024

it('The client has at most 6 KB, minified and gzipped, and needs no package', async (test) => {
  const { outputFiles } = await build({
    entryPoints: [join(import.meta.dirname, '..', '..', 'client', 'index.ts')],
    bundle: true,
    minify: true,
    write: false,
    // A module of Node.js, or a package, would be an error.
    platform: 'browser',
  })
  const bytes = gzipSync(outputFiles[0]?.text ?? '', { level: 9 }).length
  test.diagnostic(`${bytes} bytes`)
  assert.ok(bytes <= mostBytes, `${bytes} bytes`)
})
