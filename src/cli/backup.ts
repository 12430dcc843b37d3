import { createReadStream, createWriteStream, readdirSync, statSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { basename, extname, join } from 'node:path'
import { pipeline } from 'node:stream/promises'
import { createGzip } from 'node:zlib'
import { WrongConfig } from '../config.ts'
import { explainErrno } from '../errno.ts'
import { backUp as copyDatabase } from '../store/sqlite/backup.ts'
import type { FileSummary } from '../store/store.ts'
import type { Call, Printed } from './command.ts'
import { CommandFailed, exitCodes } from './exit.ts'
import {
  describeStop,
  explainWrite,
  makeDraft,
  makeFile,
  removeDraft,
  standardStream,
  writeOut,
} from './files.ts'
import { type Progress, startProgress, toCount } from './progress.ts'
import { stopOnSignal, throwIfStopped } from './signals.ts'
import { requireExisting, requireOtherFile, requireSqlite } from './stores.ts'
import type { Terminal } from './terminal.ts'

const useItsTools =
  'PostgreSQL has its own backup tools: use pg_dump --schema=plant_store, or pg_basebackup with a WAL archive. See docs/running.md.'

/** A backup that is being made, of the database at `path`. */
interface Job {
  readonly path: string
  readonly file: string
  readonly progress: Progress
  readonly signal: AbortSignal
}

interface BackupFlags {
  readonly quiet: boolean | undefined
  readonly keep: number | undefined
}

/** Copies the store into one file, a folder or to standard output, while others may use it. */
export async function backUp(call: Call<BackupFlags, 'location'>): Promise<Printed> {
  const { flags, config, terminal } = call
  const [path = ''] = call.args
  requireExisting(config)
  const database = requireSqlite(config.storeLocation, useItsTools)
  const folder = flags.keep === undefined ? undefined : openBackupFolder(path, flags.keep, database)
  const file = folder?.file ?? path
  const isStandard = file === standardStream
  if (isStandard && terminal.output.isTTY) {
    throw new WrongConfig(['A backup is not for a terminal: name a file or redirect the output.'])
  }
  if (!isStandard) requireOtherFile(file, config.storeLocation)
  const signal = stopOnSignal()
  const progress = startProgress('backup', 'pages', terminal, flags)
  const job = { path: database, file, progress, signal }
  const make = file.endsWith('.gz') ? copyGzipped : copyPlain
  const making = isStandard
    ? stream(terminal, job)
    : makeFile(file, 'refuse', signal, (draft) => make(draft, job))
  const { plants, tokens } = await making
    .catch((error: unknown) => {
      // Streams that a signal aborts fail with an error of their own.
      throwIfStopped(signal, describeStop(file))
      throw error
    })
    .finally(progress.stop)
  const pruned = await folder?.prune()
  const name = isStandard ? 'standard output' : file
  const removed = pruned ? [`Removed: ${toCount(pruned, 'older backups')}.`] : []
  const done = `Backed up: ${toCount(plants, 'plants')} and ${toCount(tokens, 'tokens')} in ${name}, checked.`
  return { remarks: flags.quiet ? [] : [done, ...removed] }
}

function copyPlain(draft: string, { path, file, progress, signal }: Job) {
  return copyDatabase(path, draft, (done, total): void => {
    throwIfStopped(signal, describeStop(file))
    progress.report(done, { done, total })
  })
}

async function copyGzipped(draft: string, job: Job): Promise<FileSummary> {
  const plain = `${draft}-plain`
  try {
    await makeDraft(plain)
    const summary = await copyPlain(plain, job)
    const { signal } = job
    await pipeline(createReadStream(plain), createGzip(), createWriteStream(draft), { signal })
    return summary
  } finally {
    await removeDraft(plain)
  }
}

/** SQLite writes a backup out of order, so it is made in a temporary folder first. */
async function stream({ output }: Terminal, job: Job): Promise<FileSummary> {
  const explain = (error: unknown) => {
    throw explainWrite(`a temporary file in ${tmpdir()} (TMPDIR)`, error)
  }
  const folder = await mkdtemp(join(tmpdir(), 'plant-store-backup-')).catch(explain)
  try {
    const draft = join(folder, 'backup.db')
    const summary = await copyPlain(draft, job).catch(explain)
    await writeOut(createReadStream(draft), output, job.signal)
    return summary
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

/** A folder with the newest backups of one store. */
interface BackupFolder {
  /** The file for a backup that is made now. */
  readonly file: string
  /** Removes surplus backups, after a new one was made. Returns how many. */
  prune(): Promise<number>
}

const time = String.raw`\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d-\d{3}Z`

/**
 * Opens a folder of backups, which carry the name of the store and their time. Other files are
 * never touched, and neither are drafts: another process may be writing them.
 */
function openBackupFolder(folder: string, kept: number, database: string): BackupFolder {
  requireFolder(folder)
  const stem = basename(database, extname(database))
  const own = new RegExp(`^${RegExp.escape(stem)}-${time}\\.db\\.gz$`)
  const newest = `${stem}-${new Date().toISOString().replaceAll(/[:.]/g, '-')}.db.gz`

  return {
    file: join(folder, newest),
    async prune() {
      const others = readdirSync(folder, { withFileTypes: true })
        .filter((entry) => entry.isFile() && own.test(entry.name) && entry.name !== newest)
        .map(({ name }) => name)
        .sort()
      // If the clock was set back, the new backup looks old. It is kept whatever its name.
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
    throw new WrongConfig([`Cannot keep backups in ${folder}: ${explainErrno(error)}.`])
  }
  throw new WrongConfig([`Cannot keep backups in ${folder}: it is not a folder.`])
}

async function remove(path: string): Promise<void> {
  try {
    await rm(path, { force: true })
  } catch (error) {
    const message = `The backup was made, but ${path} cannot be removed: ${explainErrno(error)}.`
    throw new CommandFailed(exitCodes.inputOutput, message, { cause: error })
  }
}
