import { closeSync, fsyncSync, mkdirSync, openSync } from 'node:fs'
import { dirname, resolve } from 'node:path'

/**
 * Makes a folder for a database, with those above it, and brings their names to the disk. SQLite syncs the folder of
 * its files, and nobody the folders above it: a power cut could take all of a new one away.
 */
export function makeFolder(path: string): void {
  const folder = resolve(path)
  const first = mkdirSync(folder, { recursive: true, mode: 0o700 })
  // Windows cannot sync a folder.
  if (first === undefined || process.platform === 'win32') return
  for (let made = folder; made.length >= first.length; made = dirname(made)) {
    syncFolder(dirname(made))
  }
}

function syncFolder(folder: string): void {
  const descriptor = openSync(folder, 'r')
  try {
    fsyncSync(descriptor)
  } finally {
    closeSync(descriptor)
  }
}
