import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { describe, it } from 'node:test'
import { promisify } from 'node:util'
import { bombs } from './bombs.ts'

const program = join(import.meta.dirname, 'judge-bombs.ts')

describe('the JSON reader', () => {
  it('judges every bomb with a heap of 64 MB, and keeps nothing but the plants', async () => {
    const args = ['--max-old-space-size=64', program]
    const { stdout } = await promisify(execFile)(process.execPath, args)
    assert.equal(stdout, `${bombs.length} bombs, 200 plants\n`)
  })
})
