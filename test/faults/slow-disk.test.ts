import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { describe, it } from 'node:test'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { programEnv } from '../support/child.ts'
import { compileShim, newQuickFolder } from './lab/shim.ts'
import type { SlowDiskReport } from './lab/slow-disk-writer.ts'

const writer = fileURLToPath(new URL('lab/slow-disk-writer.ts', import.meta.url))
const shim = compileShim()

describe('a disk that becomes slow', { skip: shim.skip }, () => {
  it('is written by a thread until it is fast again, without delaying reads', async (test) => {
    const folder = newQuickFolder()
    const { stdout } = await promisify(execFile)(
      process.execPath,
      [writer, join(folder, 'plants.db')],
      { env: { ...programEnv, ...shim.toEnv?.({ folder, syncMs: 0 }) } },
    )
    test.diagnostic(stdout.trim())
    const report: SlowDiskReport = JSON.parse(stdout)
    assert.equal(report.first, 'in place')
    const [untilThread = 0, untilNext = 0] = report.commitsUntilThreads
    assert.ok(untilThread > 1, 'one slow commit starts a thread')
    assert.ok(untilNext > 2 * untilThread, 'a thread that died is replaced at once')
    const { delayMs = 0 } = report
    assert.ok(delayMs > 0 && delayMs <= 5, `a batch was delayed by ${delayMs} ms`)
    assert.deepEqual(report.answers, ['get', 'create'])
    assert.notEqual(report.commitsUntilInPlace, undefined, 'it stays in the thread on a fast disk')
    assert.equal(report.stored, report.created)
  })
})
