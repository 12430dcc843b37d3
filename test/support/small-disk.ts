import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmdirSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { releaseAfterFile } from './release.ts'

/** Mounts a disk of this size for the tests of a file. Root may; others get the reason to skip. */
export function mountSmallDisk(kibibytes: number) {
  const folder = mkdtempSync(join(tmpdir(), 'plant-store-test-'))
  const { error, status, stderr } = spawnSync(
    'mount',
    ['-t', 'tmpfs', '-o', `size=${kibibytes}k`, 'tmpfs', folder],
    { encoding: 'utf8' },
  )
  if (error !== undefined || status !== 0) {
    rmdirSync(folder)
    const reason = process.getuid?.() === 0 ? (error?.message ?? stderr.trim()) : 'only root may'
    return { folder: '', skip: `cannot mount a small disk: ${reason}` }
  }
  releaseAfterFile(() => {
    // Fails if something has left a file open in this process.
    const { stderr } = spawnSync('umount', [folder], { encoding: 'utf8' })
    assert.equal(stderr, '')
    rmdirSync(folder)
  })
  return { folder, skip: false }
}
