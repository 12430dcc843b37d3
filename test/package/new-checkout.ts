import assert from 'node:assert/strict'
import { appendFileSync, cpSync, existsSync, readdirSync, rmSync } from 'node:fs'
import { delimiter, join } from 'node:path'
import { describe, it } from 'node:test'
import { start } from '../support/command.ts'
import { newFolder } from '../support/folder.ts'

const root = join(import.meta.dirname, '..', '..')
/** Without the commands of this checkout, above all its Node.js. */
const PATH = (process.env.PATH ?? '')
  .split(delimiter)
  .filter((folder) => !folder.includes('node_modules'))
  .join(delimiter)

describe('a new checkout', { timeout: 900_000 }, () => {
  const checkout = newFolder()
  const needed = [
    ...['package.json', 'package-lock.json', '.npmrc', 'bin', 'build', 'client', 'runtime', 'src'],
    ...['test/postgres-server', 'tsconfig.json', 'tsconfig.build.json', 'web'],
  ]
  for (const file of needed) cpSync(join(root, file), join(checkout, file), { recursive: true })
  const isThere = (name: string) => existsSync(join(checkout, 'node_modules', name))

  // bash remembers where it has found a command, dash does not.
  for (const shell of process.platform === 'win32' ? ['cmd'] : ['sh', 'bash']) {
    it(`is installed by "npm start" in ${shell}, and serves`, async () => {
      rmSync(join(checkout, 'node_modules'), { recursive: true, force: true })
      const { stdout, stderr } = await serveOnce({ npm_config_script_shell: shell })
      assert.match(stdout, /\nPlant Store [\s\S]*\n {2}curl /)
      assert.match(stderr, /Installing [^\n]*: npm ci --omit=dev\n/)
      assert.ok(isThere('pg') && !isThere('typescript'))
      assert.ok(!readdirSync(checkout).includes('.installing'))
    })
  }

  it('has the client under the name of the package', async () => {
    const script = "console.log(typeof (await import('plant-store/client')).PlantStore)"
    const command = join(checkout, 'node_modules', '.bin', 'node')
    const args = ['--input-type=module', '--eval', script]
    const { stdout } = await start(args, { folder: checkout, program: [command] }).ended
    assert.equal(stdout, 'function\n')
  })

  it('is not installed again by the next "npm start"', async () => {
    const { stderr } = await serveOnce()
    assert.doesNotMatch(stderr, /Installing/)
  })

  it('gets the packages for development before the tests, and keeps them', async () => {
    const { HOME = '' } = process.env
    const program = ['node', join(checkout, 'runtime', 'install.js')] as const
    const env = { PATH, HOME, NODE_ENV: 'production' }
    const { exitCode, stderr } = await start(['all'], { folder: checkout, program, env }).ended
    assert.equal(exitCode, 0, stderr)
    assert.ok(isThere('typescript'))
    rmSync(join(checkout, 'node_modules', 'pg'), { recursive: true })
    appendFileSync(join(checkout, 'package-lock.json'), '\n')
    assert.match((await serveOnce()).stderr, /Installing [^\n]*: npm ci --include=dev\n/)
    assert.ok(isThere('pg') && isThere('typescript'))
  })

  /** Runs `npm start` until the service listens, and stops it. */
  async function serveOnce(settings: Record<string, string> = {}) {
    const { HOME = '' } = process.env
    const { child, waitFor, ended } = start(['start'], {
      folder: checkout,
      program: ['npm'],
      env: { PATH, HOME, PORT: '0', DATABASE_URL: `sqlite:${newFolder()}/plants.db`, ...settings },
    })
    await waitFor(/\n {2}curl /)
    child.kill('SIGTERM')
    return ended
  }
})
