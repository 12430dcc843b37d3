import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after } from 'node:test'

/** A new empty folder that is gone when the tests of this file are over. */
export function newFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'plant-store-test-'))
  after(() => rmSync(folder, { recursive: true, force: true }))
  return folder
}
