import { randomBytes } from 'node:crypto'
import {
  closeSync,
  existsSync,
  fstatSync,
  fsyncSync,
  linkSync,
  lstatSync,
  mkdirSync,
  openSync,
  realpathSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { basename, dirname, join, resolve } from 'node:path'

/*
 * Names of files and folders, for the store and for the commands: where a name leads to, and how a
 * new one survives a power cut.
 */

/** The file that a link leads to. SQLite keeps the WAL beside that file, not beside the link. */
export function followLink(path: string): string {
  try {
    return lstatSync(path).isSymbolicLink() ? realpathSync(path) : path
  } catch {
    return path
  }
}

/**
 * Creates a folder with its missing parents, and syncs each new name. SQLite syncs only the folder
 * of its files, so a new parent could be lost in a power cut. `made` gets each new folder, the
 * outermost first, even if a later one cannot be made.
 */
export function makeFolder(path: string, made: string[] = []): void {
  const folder = resolve(path)
  const parent = dirname(folder)
  // On Windows even the root may be missing: a drive that is not there, which nobody can make.
  if (existsSync(folder) || parent === folder) return
  // One at a time, because the recursive mkdir of Node.js never returns on /proc.
  makeFolder(parent, made)
  try {
    mkdirSync(folder, { mode: 0o700 })
  } catch (error) {
    // Another process that starts at the same time has created it.
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
  }
  made.push(folder)
  syncFolder(parent)
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

/** Gives a file its final name. Unlike a rename alone, this fails if the name is taken. */
export function nameOnce(draft: string, path: string): void {
  try {
    linkSync(draft, path)
  } catch {
    // Some file systems have no links. If the name is taken, this fails as well.
    writeFileSync(path, '', { flag: 'wx' })
    renameSync(draft, path)
  }
}

/** Whether two names, or descriptors, lead to one file, through links and however written. */
export function isSameFile(one: string | number, other: string | number): boolean {
  return toIdentity(one) === toIdentity(other)
}

/** The device and number of an existing file, or the resolved path of a new one. */
function toIdentity(file: string | number): string {
  if (typeof file === 'string' && !existsSync(file)) {
    const folder = dirname(resolve(file))
    return join(existsSync(folder) ? realpathSync(folder) : folder, basename(file))
  }
  const { dev, ino } =
    typeof file === 'number' ? fstatSync(file, { bigint: true }) : statSync(file, { bigint: true })
  return `${dev}:${ino}`
}

/** A file that is new, and only for its owner: SQLite would let everybody read it. */
const newFile = { flag: 'wx', mode: 0o600 }

/** Makes an empty file beside a path, uses it, and removes it if it is still there. */
export async function withDraft<Value>(
  path: string,
  use: (draft: string) => Promise<Value>,
): Promise<Value> {
  // SQLite would take a relative path such as `file:x.db` for a URL.
  const draft = resolve(`${path}.part-${randomBytes(6).toString('hex')}`)
  function remove(): void {
    // When a backup fails, SQLite leaves files beside its destination.
    for (const suffix of ['', '-journal', '-wal', '-shm']) rmSync(draft + suffix, { force: true })
  }
  // Before the listeners that are there: they may remove the folder.
  process.prependListener('exit', remove)
  try {
    writeFileSync(draft, '', newFile)
    return await use(draft)
  } finally {
    process.off('exit', remove)
    remove()
  }
}
