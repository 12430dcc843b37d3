/**
 * Runs the tests, with any flags of `node --test`: `npm test` those outside of `test/faults`, and
 * `npm run test:faults` those in it. It is a program because npm's scripts cannot set variables or
 * quote patterns in a way that every shell understands.
 */
import { spawn } from 'node:child_process'
import { globSync } from 'node:fs'
import module from 'node:module'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'

const root = join(import.meta.dirname, '..')
const flags = [
  // The runner tracks every promise until it is collected, which is cheapest while it is young.
  '--max-semi-space-size=64',
  '--test-global-setup=test/support/global-setup.ts',
  '--test-concurrency=4',
  '--test-timeout=300000',
  ...['--test-reporter=spec', '--test-reporter-destination=stdout'],
  ...['--test-reporter=./test/support/skips.ts', '--test-reporter-destination=stdout'],
]
const [, , ...given] = process.argv
const patterns = given.includes('faults')
  ? ['test/faults/*.test.ts']
  : ['test/*.test.ts', 'test/!(faults)/*.test.ts']
const args = ['--test', ...flags, ...given.filter((one) => one !== 'faults'), ...patterns]
const cache = join(root, 'node_modules', '.cache', `node-${process.versions.node}`)
const env = { ...process.env, NODE_COMPILE_CACHE: cache }
await compileTests()
spawn(process.execPath, args, { cwd: root, env, stdio: 'inherit' }).on('exit', (code, signal) => {
  process.exitCode = code ?? (signal === null ? 0 : 1)
})

/**
 * Compiles the tests, and all that they import, for the processes that run them: a twentieth less
 * work in a new checkout. The first module throws, so none of the others is evaluated.
 */
async function compileTests(): Promise<void> {
  module.enableCompileCache(cache)
  const files = globSync(patterns, { cwd: root }).map((file) => pathToFileURL(join(root, file)))
  const imports = ['data:text/javascript,throw 0', ...files].map(
    (url) => `import ${JSON.stringify(url)}`,
  )
  await import(`data:text/javascript,${encodeURIComponent(imports.join('\n'))}`).catch(() => {})
  module.flushCompileCache()
}
