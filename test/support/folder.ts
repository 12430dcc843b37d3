import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { releaseAfterTest } from './release.ts'

/** Makes a new empty folder, which is removed with the test. */
export function newFolder(parent = tmpdir()): string {
  const folder = mkdtempSync(join(parent, 'plant-store-test-'))
  releaseAfterTest(() => rmSync(folder, { recursive: true, force: true }))
  return folder
}
