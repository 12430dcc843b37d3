import { accessSync, constants, mkdtempSync, rmSync, statfsSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { releaseAfterTest } from './release.ts'

/** Makes a new empty folder, which is removed with the test. */
export function newFolder(parent = tmpdir()): string {
  const folder = mkdtempSync(join(parent, 'plant-store-test-'))
  releaseAfterTest(() => rmSync(folder, { recursive: true, force: true }))
  return folder
}

const memory = '/dev/shm'
const enoughBytes = 2 ** 31

/** The folder for files in memory, which no sync waits for, where it has enough room. */
export function findMemory(): string | undefined {
  try {
    accessSync(memory, constants.W_OK)
    const { bavail, bsize } = statfsSync(memory)
    return bavail * bsize >= enoughBytes ? memory : undefined
  } catch {
    return undefined
  }
}
