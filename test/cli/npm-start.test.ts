import assert from 'node:assert/strict'
import { join } from 'node:path'
import { describe, it } from 'node:test'
import { start } from '../support/command.ts'
import { newFolder } from '../support/folder.ts'
import { releaseAfterTest } from '../support/release.ts'

const root = join(import.meta.dirname, '..', '..')

describe('npm start', () => {
  it('hands SIGTERM on to the service', { timeout: 60_000 }, async () => {
    const { PATH = '', HOME = '' } = process.env
    const { child, ended, waitFor } = start(['start'], {
      folder: root,
      program: ['npm'],
      env: { PATH, HOME, PORT: '0', DATABASE_URL: `sqlite:${join(newFolder(), 'plants.db')}` },
    })
    const [, pid] = await waitFor(/"pid":(\d+),.*"listening"/)
    releaseAfterTest(() => killIfRunning(Number(pid)))
    child.kill('SIGTERM')
    // The output ends with the service, not with npm.
    const { stderr } = await ended
    assert.match(stderr, /stopped: every accepted request was answered/)
  })
})

function killIfRunning(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL')
  } catch (error) {
    assert.equal((error as NodeJS.ErrnoException).code, 'ESRCH')
  }
}
