/**
 * Runs the tests: `npm test`, with any flags of `node --test`. It is a program because npm's scripts
 * cannot set variables or quote patterns in a way that every shell understands.
 */
import { spawn } from 'node:child_process'
import { join } from 'node:path'

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
const patterns = ['test/*.test.ts', 'test/*/*.test.ts']
const args = ['--test', ...flags, ...process.argv.slice(2), ...patterns]
const cache = join(root, 'node_modules', '.cache', `node-${process.versions.node}`)
const env = { ...process.env, NODE_COMPILE_CACHE: cache }
spawn(process.execPath, args, { cwd: root, env, stdio: 'inherit' }).on('exit', (code, signal) => {
  process.exitCode = code ?? (signal === null ? 0 : 1)
})
