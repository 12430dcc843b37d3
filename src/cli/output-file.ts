import { randomBytes } from 'node:crypto'
import { existsSync } from 'node:fs'
import { chmod, link, open, realpath, rename, rm, stat, writeFile } from 'node:fs/promises'
import { dirname, resolve } from 'node:path'
import { CommandFailed, exitCodes, explainFile } from './outcome.ts'
import { requireGoingOn } from './signals.ts'

/** What becomes of a file that has the name already. */
export type Existing = 'replace' | 'refuse'

const ownerOnly = 0o600

/**
 * Makes a file under another name beside it, and gives it its own only when it is whole and on disk. What fails, or is
 * stopped, leaves nothing behind.
 */
export async function makeFile<Value>(
  path: string,
  existing: Existing,
  signal: AbortSignal,
  make: (draft: string) => Promise<Value>,
): Promise<Value> {
  try {
    const target = existing === 'replace' ? await findTarget(path) : path
    // A device or a pipe is written to; in its place, a file would be of no use to whoever waits at its other end.
    return target === undefined ? await make(path) : await makeWhole(target, existing, signal, make)
  } catch (error) {
    throw error instanceof Error && 'syscall' in error ? cannotWrite(path, error) : error
  }
}

/** The file behind a name, which may be a link; undefined when it is no file at all. */
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
    requireGoingOn(signal, 'Stopped: nothing was kept. Run the command again.')
    await (existing === 'replace' ? rename(draft, path) : nameOnce(draft, path))
    await sync(dirname(resolve(path)))
    return value
  } finally {
    // Those with a suffix are what SQLite leaves behind when it fails.
    for (const suffix of ['', '-journal', '-wal', '-shm']) await rm(draft + suffix, { force: true })
  }
}

/** A link fails where the name is taken, whoever took it and however late. Some file systems have none. */
async function nameOnce(draft: string, path: string): Promise<void> {
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
