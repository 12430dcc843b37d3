import { randomBytes } from 'node:crypto'
import { existsSync } from 'node:fs'
import { chmod, link, open, realpath, rename, rm, stat, writeFile } from 'node:fs/promises'
import { dirname, resolve } from 'node:path'
import type { Readable, Writable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { explainFile } from '../../store/file-errors.ts'
import { CommandFailed, exitCodes } from '../exit.ts'
import { throwIfStopped } from '../signals.ts'
import { cannotPrint } from '../terminal.ts'

/** The treatment of a file that already has the name. */
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
    throw explainWrite(path, error)
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
    await removeDraft(draft)
  }
}

/** Removes a draft, with the files beside it that SQLite leaves when it fails. */
export async function removeDraft(draft: string): Promise<void> {
  for (const suffix of ['', '-journal', '-wal', '-shm']) await rm(draft + suffix, { force: true })
}

/** Writes everything to standard output. */
export async function writeOut(
  source: Readable,
  output: Writable,
  signal: AbortSignal,
): Promise<void> {
  try {
    await pipeline(source, output, { end: false, signal })
  } catch (error) {
    throw isSystemError(error) ? cannotPrint(error) : error
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

/** An error of the system while a file was written, in words. Any other error stays as it is. */
export function explainWrite(path: string, error: unknown): unknown {
  if (!isSystemError(error)) return error
  const message = `Cannot write ${path}: ${explainFile(error)}.`
  return new CommandFailed(exitCodes.cannotCreate, message, { cause: error })
}

function isSystemError(error: unknown): error is Error {
  return error instanceof Error && 'syscall' in error
}

async function sync(path: string): Promise<void> {
  const file = await open(path, 'r')
  try {
    await file.sync()
  } finally {
    await file.close()
  }
}
