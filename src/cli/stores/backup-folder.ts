import { readdirSync, statSync } from 'node:fs'
import { rm } from 'node:fs/promises'
import { basename, extname, join } from 'node:path'
import { WrongConfig } from '../../config.ts'
import { explainFile } from '../../store/file-errors.ts'
import type { StoreLocation } from '../../store/open.ts'
import { CommandFailed, exitCodes } from '../exit.ts'

/** A folder with the newest backups of one store. */
export interface BackupFolder {
  /** The file for a backup that is made now. */
  readonly file: string
  /** Removes the backups that are too many, after one was made. Answers how many. */
  prune(): Promise<number>
}

const maxKept = 10_000
const time = String.raw`\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d-\d{3}Z`

/**
 * Opens a folder of backups, which carry the name of the store and their time. Other files are
 * never touched, and neither are drafts: another process may be writing them.
 */
export function openBackupFolder(
  folder: string,
  keep: string,
  location: StoreLocation,
): BackupFolder {
  const kept = /^\d{1,5}$/.test(keep) ? Number(keep) : 0
  if (kept < 1 || kept > maxKept) {
    throw new WrongConfig([`--keep must be a number of backups from 1 to ${maxKept}.`])
  }
  requireFolder(folder)
  const stem = location.engine === 'sqlite' ? basename(location.path, extname(location.path)) : ''
  const own = new RegExp(`^${RegExp.escape(stem)}-${time}\\.db\\.gz$`)
  const newest = `${stem}-${new Date().toISOString().replaceAll(/[:.]/g, '-')}.db.gz`

  return {
    file: join(folder, newest),
    async prune() {
      const others = readdirSync(folder, { withFileTypes: true })
        .filter((entry) => entry.isFile() && own.test(entry.name) && entry.name !== newest)
        .map(({ name }) => name)
        .sort()
      // A clock that was set back makes the new backup look old: it is kept whatever its name.
      const surplus = others.slice(0, Math.max(0, others.length - (kept - 1)))
      for (const name of surplus) await remove(join(folder, name))
      return surplus.length
    },
  }
}

/** A folder that is missing may be a disk that is not mounted, so it is not made. */
function requireFolder(folder: string): void {
  try {
    if (statSync(folder).isDirectory()) return
  } catch (error) {
    throw new WrongConfig([`Cannot keep backups in ${folder}: ${explainFile(error)}.`])
  }
  throw new WrongConfig([`Cannot keep backups in ${folder}: it is not a folder.`])
}

async function remove(path: string): Promise<void> {
  try {
    await rm(path, { force: true })
  } catch (error) {
    const message = `The backup was made, but ${path} cannot be removed: ${explainFile(error)}.`
    throw new CommandFailed(exitCodes.inputOutput, message, { cause: error })
  }
}
