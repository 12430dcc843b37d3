import { randomBytes } from 'node:crypto'
import { chmod, link, open, rename, rm, writeFile } from 'node:fs/promises'
import { dirname, resolve } from 'node:path'
import { CommandFailed, exitCodes, explainFile } from './outcome.ts'

/**
 * Makes a file under another name beside it, and gives it its own only when it is whole and on disk. What fails leaves
 * nothing behind. A file that is there is replaced, or kept and the command refused.
 */
export async function makeFile<Value>(
  path: string,
  existing: 'replace' | 'refuse',
  make: (draft: string) => Promise<Value>,
): Promise<Value> {
  const draft = `${path}.part-${randomBytes(6).toString('hex')}`
  try {
    await writeFile(draft, '', { flag: 'wx', mode: ownerOnly })
    const value = await make(draft)
    await chmod(draft, ownerOnly)
    await sync(draft)
    if (existing === 'replace') await rename(draft, path)
    // A link fails where the name is taken, whoever took it and however late.
    else await link(draft, path)
    await sync(dirname(resolve(path)))
    return value
  } catch (error) {
    throw error instanceof Error && 'syscall' in error ? cannotWrite(path, error) : error
  } finally {
    // Those with a suffix are what SQLite leaves behind when it fails.
    for (const suffix of ['', '-journal', '-wal', '-shm']) await rm(draft + suffix, { force: true })
  }
}

const ownerOnly = 0o600

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
