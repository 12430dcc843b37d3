import { createReadStream, createWriteStream, readdirSync, rmdirSync, statSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { basename, dirname, extname, join } from 'node:path'
import { pipeline } from 'node:stream/promises'
import { createGzip } from 'node:zlib'
import { WrongConfig } from '../config.ts'
import { explainErrno } from '../errno.ts'
import {
  checkBackup,
  backUp as copyDatabase,
  findObstacle,
  findWal,
  renameJournal,
  UnusableBackup,
} from '../store/sqlite/backup.ts'
import { makeFolder } from '../store/sqlite/folder.ts'
import type { FileSummary } from '../store/store.ts'
import { decompress, isDamagedGzip } from '../transfer/gunzip.ts'
import type { Call, Printed } from './command.ts'
import { CommandFailed, exitCodes } from './exit.ts'
import {
  describeStop,
  explainWrite,
  type Input,
  makeDraft,
  makeFile,
  removeDraft,
  standardStream,
  withInput,
  writeOut,
} from './files.ts'
import type { backupFlags, quiet } from './flag-tables.ts'
import { type Progress, startProgress, toCount } from './progress.ts'
import { stopOnSignal, throwIfStopped } from './signals.ts'
import { requireExisting, requireOtherFile, requirePersistent, requireSqlite } from './stores.ts'
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

/** Copies the store into one file, a folder or to standard output, while others may use it. */
export async function backUp(call: Call<typeof backupFlags, 'location'>): Promise<Printed> {
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

const bytesPerMebibyte = 1024 * 1024
const useCopy =
  'A backup is restored to sqlite:PATH. To move it to PostgreSQL, restore it, then use: plant-store copy --from sqlite:PATH --to postgres://…. A dump of PostgreSQL itself is restored with pg_restore.'

/** Makes a store from a backup, gzipped or not, where there is none. */
export async function restoreBackup(
  call: Call<{ quiet: typeof quiet }, 'location'>,
): Promise<Printed> {
  const { flags, terminal } = call
  const { storeLocation } = call.config
  const [file = ''] = call.args
  requirePersistent(storeLocation)
  const path = requireSqlite(storeLocation, useCopy)
  const signal = stopOnSignal()
  const progress = startProgress('restore', 'MiB', terminal, flags)
  const restoring = withInput(file, terminal, signal, (input) => {
    requireNoWal(file)
    requireFree(path)
    return restoreTo(path, readWithProgress(input, progress), signal)
  })
  const { plants, tokens } = await restoring
    .catch((error: unknown) => {
      throwIfStopped(signal, describeStop(path))
      throw toRestoreFailure(error, file === standardStream ? 'Standard input' : file)
    })
    .finally(progress.stop)
  return {
    note: `Restored: ${toCount(plants, 'plants')} and ${toCount(tokens, 'tokens')} in ${storeLocation.label}, checked.`,
  }
}

async function* readWithProgress(input: Input, progress: Progress): AsyncGenerator<Buffer> {
  let bytes = 0
  for await (const chunk of decompress(input.chunks)) {
    yield chunk
    bytes += chunk.length
    progress.report(Math.floor(bytes / bytesPerMebibyte), input.part())
  }
}

/** Copies a backup to the path and checks it. A failure leaves no file and no folder behind. */
async function restoreTo(
  path: string,
  chunks: AsyncIterable<Buffer>,
  signal: AbortSignal,
): Promise<FileSummary> {
  let newFolders: string[] = []
  try {
    newFolders = makeFolder(dirname(path))
    return await makeFile(path, 'refuse', signal, async (draft) => {
      await pipeline(chunks, createWriteStream(draft), { signal })
      const summary = checkBackup(draft)
      renameJournal(draft)
      return summary
    })
  } catch (error) {
    for (const folder of newFolders.toReversed()) removeEmpty(folder)
    throw explainWrite(path, error)
  }
}

/** Another restore may have put its store there meanwhile. */
function removeEmpty(folder: string): void {
  try {
    rmdirSync(folder)
  } catch {}
}

/** Refuses a store with a WAL, whose content would be lost. */
function requireNoWal(file: string): void {
  const log = findWal(file)
  if (log === undefined) return
  throw new CommandFailed(
    exitCodes.data,
    `${log} belongs to ${file}: this is a store that is in use or was not closed, not a backup. Start the service on it, or back it up.`,
  )
}

function requireFree(path: string): void {
  const obstacle = findObstacle(path)
  if (obstacle === undefined) return
  throw new CommandFailed(
    exitCodes.cannotCreate,
    `${obstacle} exists and was not changed. Restore to another path, or move it away.`,
  )
}

function toRestoreFailure(error: unknown, name: string): unknown {
  if (error instanceof UnusableBackup) {
    return new CommandFailed(exitCodes.data, `${name} ${error.message}`, { cause: error })
  }
  if (isDamagedGzip(error)) {
    const message = `${name}: the gzip data is damaged or incomplete.`
    return new CommandFailed(exitCodes.data, message, { cause: error })
  }
  return error
}
