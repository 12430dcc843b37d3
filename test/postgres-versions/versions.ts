import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, globSync } from 'node:fs'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { before, describe, it } from 'node:test'
import { killAfterTest } from '../support/child.ts'
import { installPackages } from '../support/packages.ts'

const root = join(import.meta.dirname, '..', '..')
const toPackage = (name: string) => join(import.meta.dirname, 'node_modules', name, 'native', 'bin')
const debian = '/usr/lib/postgresql/15/bin'
const isLinux = process.platform === 'linux' && process.arch === 'x64'
const packageMissing = !isLinux && 'npm has this release for Linux on x64 only'
const debianMissing = !existsSync(debian) && 'missing: apt install postgresql-15'

interface Release {
  readonly version: string
  /** The folder of its programs; undefined for those of the checkout. */
  readonly bin?: string
  readonly skip: string | false
}

const releases: Record<string, Release> = {
  'PostgreSQL 15': { version: '15', bin: toPackage('postgres-15'), skip: packageMissing },
  'PostgreSQL 15 of Debian': { version: '15', bin: debian, skip: debianMissing },
  'PostgreSQL 16': { version: '16', bin: toPackage('postgres-16'), skip: packageMissing },
  'PostgreSQL 17': { version: '17', bin: toPackage('postgres-17'), skip: packageMissing },
  'PostgreSQL 18': { version: '18', skip: false },
}

/** The suites that depend on the server, and the one that proves which server that is. */
const suites = [
  'test/postgres-versions/server.ts',
  'test/store/{conformance,journal*,postgres*,receivers,upgrade*}.test.ts',
  'test/{faults/failover,metrics/store-metrics,cli/check,webhooks/lease}.test.ts',
].flatMap((pattern) => globSync(pattern, { cwd: root }))

describe('the store', () => {
  before(async () => {
    if (isLinux) await installPackages(import.meta.dirname)
  })

  for (const [name, { version, bin, skip }] of Object.entries(releases)) {
    it(`runs on ${name}`, { skip }, async (test) => {
      // The runner tells its own tests from others by NODE_TEST_CONTEXT.
      const { NODE_TEST_CONTEXT: _, ...inherited } = process.env
      const env = {
        ...inherited,
        TEST_POSTGRES_VERSION: version,
        ...(bin !== undefined && { TEST_POSTGRES_BIN: bin }),
      }
      const setup = '--test-global-setup=test/support/global-setup.ts'
      const args = ['--test', setup, '--test-timeout=120000', '--test-reporter=tap', ...suites]
      const child = spawn(process.execPath, args, {
        cwd: root,
        env,
        stdio: ['ignore', 'pipe', 'inherit'],
      })
      killAfterTest(child)
      const [output, [exitCode]] = await Promise.all([text(child.stdout), once(child, 'close')])
      const count = (what: string) =>
        Number(new RegExp(`^# ${what} (\\d+)$`, 'm').exec(output)?.[1])
      const server = /^# (PostgreSQL \S+)/m.exec(output)?.[1]
      test.diagnostic(`${server}: ${count('pass')} passed, ${count('skipped')} skipped`)
      const failed = output.split('\n').filter((line) => /^ *not ok /.test(line))
      assert.deepEqual({ failed, exitCode }, { failed: [], exitCode: 0 })
      assert.ok(count('pass') > suites.length)
    })
  }
})
