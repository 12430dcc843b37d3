import { closeSync, existsSync, fsyncSync, mkdirSync, openSync } from 'node:fs'
import nodePath, { dirname } from 'node:path'

/**
 * Creates a folder with its missing parents, and syncs each new name. SQLite syncs only the folder
 * of its files, so a new parent could be lost in a power cut. Returns the new folders.
 */
export function makeFolder(path: string): string[] {
  const missing = findMissing(path, existsSync)
  for (const folder of missing) {
    makeOne(folder)
    syncFolder(dirname(folder))
  }
  return missing
}

/**
 * The folder and its parents that do not exist, outermost first. On Windows even the root may be
 * one of them: a drive that is not there, which nobody can make.
 */
export function findMissing(
  path: string,
  exists: (folder: string) => boolean,
  { resolve, dirname } = nodePath,
): string[] {
  const missing: string[] = []
  for (let folder = resolve(path); !exists(folder); folder = dirname(folder)) {
    missing.unshift(folder)
    if (dirname(folder) === folder) break
  }
  return missing
}

/** One at a time, because the recursive mkdir of Node.js never returns on /proc. */
function makeOne(folder: string): void {
  try {
    mkdirSync(folder, { mode: 0o700 })
  } catch (error) {
    // Another process that starts at the same time has created it.
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
  }
}

/** Makes new names in a folder survive a power cut. Windows cannot sync a folder. */
export function syncFolder(folder: string): void {
  if (process.platform === 'win32') return
  const descriptor = openSync(folder, 'r')
  try {
    fsyncSync(descriptor)
  } finally {
    closeSync(descriptor)
  }
}
