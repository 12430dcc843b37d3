import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { readdirSync } from 'node:fs'
import { describe, it } from 'node:test'
import { fileURLToPath } from 'node:url'
import { programEnv } from '../support/child.ts'
import { findServer } from '../support/databases.ts'
import { newFolder } from '../support/folder.ts'

const file = fileURLToPath(new URL('failing-cases.ts', import.meta.url))

/** Runs the failing tests, or those with a name, and answers what they leave. */
async function runFailing(...flags: string[]) {
  const folder = newFolder()
  const env = { ...programEnv, TMPDIR: folder, TEST_POSTGRES_URL: await findServer() }
  const options = { env, encoding: 'utf8', timeout: 90_000 } as const
  const { status, stdout } = spawnSync(process.execPath, ['--test', ...flags, file], options)
  const count = (what: string) => Number(new RegExp(`^ℹ ${what} (\\d+)$`, 'm').exec(stdout)?.[1])
  return { status, failed: count('fail'), passed: count('pass'), left: readdirSync(folder) }
}

describe('a test that fails', () => {
  it('ends the run with a summary, whatever it holds open, and leaves nothing', async () => {
    assert.deepEqual(await runFailing(), { status: 1, failed: 9, passed: 0, left: [] })
  })

  it('runs alone when it is chosen by name', async () => {
    const result = await runFailing('--test-name-pattern=a wait in vain')
    assert.deepEqual(result, { status: 1, failed: 1, passed: 0, left: [] })
  })
})
