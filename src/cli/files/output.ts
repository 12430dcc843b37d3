import { randomBytes } from 'node:crypto'
import { existsSync } from 'node:fs'
import { chmod, link, open, realpath, rename, rm, stat, writeFile } from 'node:fs/promises'
import { dirname, resolve } from 'node:path'
import { explainFile } from '../../store/file-errors.ts'
import { CommandFailed, exitCodes } from '../exit.ts'
import { throwIfStopped } from '../signals.ts'

/** What happens to a file that already has the name. */
export type Existing = 'replace' | 'refuse'

const ownerOnly = 0o600

/**
 * Writes a file as a draft beside its final path and renames it when it is complete and synced. A
 * failure or a signal leaves nothing behind.
 */
export async function makeFile<Value>(
  path: string,
  existing: Existing,
  signal: AbortSignal,
  make: (draft: string) => Promise<Value>,
): Promise<Value> {
  try {
    const target = existing === 'replace' ? await findTarget(path) : path
    // A device or a pipe is written to directly: its reader waits at the other end.
    return target === undefined ? await make(path) : await makeWhole(target, existing, signal, make)
  } catch (error) {
    throw error instanceof Error && 'syscall' in error ? cannotWrite(path, error) : error
  }
}

/** The file that a path leads to, through links; undefined for a device or a pipe. */
async function findTarget(path: string): Promise<string | undefined> {
  if (!existsSync(path)) return path
  const status = await stat(path)
  return status.isFile() || status.isDirectory() ? realpath(path) : undefined
}

async function makeWhole<Value>(
  path: string,
  existing: Existing,
  signal: AbortSignal,
  make: (draft: string) => Promise<Value>,
): Promise<Value> {
  const draft = `${path}.part-${randomBytes(6).toString('hex')}`
  try {
    await writeFile(draft, '', { flag: 'wx', mode: ownerOnly })
    const value = await make(draft)
    await chmod(draft, ownerOnly)
    await sync(draft)
    throwIfStopped(signal, 'Stopped: nothing was kept. Run the command again.')
    await (existing === 'replace' ? rename(draft, path) : linkOnce(draft, path))
    await sync(dirname(resolve(path)))
    return value
  } finally {
    // SQLite leaves the files with a suffix when it fails.
    for (const suffix of ['', '-journal', '-wal', '-shm']) await rm(draft + suffix, { force: true })
  }
}

/**
 * A link, unlike a rename, fails where the name was taken meanwhile. Some file systems have no
 * links.
 */
async function linkOnce(draft: string, path: string): Promise<void> {
  try {
    await link(draft, path)
  } catch (error) {
    const { code = '' } = error as NodeJS.ErrnoException
    if (!withoutLinks.includes(code) || existsSync(path)) throw error
    await rename(draft, path)
  }
}

const withoutLinks = ['EPERM', 'ENOTSUP', 'EOPNOTSUPP', 'ENOSYS']

function cannotWrite(path: string, error: unknown): CommandFailed {
  const message = `Cannot write ${path}: ${explainFile(error)}.`
  return new CommandFailed(exitCodes.cannotCreate, message, { cause: error })
}

async function sync(path: string): Promise<void> {
  const file = await open(path, 'r')
  try {
    await file.sync()
  } finally {
    await file.close()
  }
}
