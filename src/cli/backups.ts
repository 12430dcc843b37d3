import { createReadStream, createWriteStream, readdirSync, rmdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, dirname, extname, join } from 'node:path'
import { pipeline } from 'node:stream/promises'
import { WrongConfig } from '../config.ts'
import { explainErrno } from '../errno.ts'
import { makeFolder, withDraft } from '../paths.ts'
import {
  checkBackup,
  backUp as copyDatabase,
  findObstacle,
  findWal,
  separateJournal,
  UnusableBackup,
} from '../store/sqlite/backup.ts'
import { type FileSummary, UnusableStore } from '../store/store.ts'
import { decompress, isDamagedGzip } from '../transfer/gunzip.ts'
import type { Call, Printed } from './commands.ts'
import { explainWrite, makeFile, standardStream, withInput, writeTo } from './files.ts'
import { requireExisting, requireOtherFile, requirePersistent } from './stores.ts'
import { CommandFailed, exitCodes, startProgress, type Terminal, toCount } from './terminal.ts'

const useItsTools =
  'PostgreSQL has its own backup tools: use pg_dump --schema=plant_store, or pg_basebackup with a WAL archive. See docs/running.md.'

/** Copies the store into one file, a folder or to standard output, while others may use it. */
export async function backUp(call: Call<'backup'>): Promise<Printed> {
  const { flags, config, terminal } = call
  const { storeLocation: location } = config
  const [path = ''] = call.args
  requireExisting(config)
  if (location.engine === 'postgres') throw new UnusableStore(useItsTools)
  const { keep } = flags
  const newest = keep === undefined ? undefined : nameBackup(path, location.path)
  const file = newest === undefined ? path : join(path, newest)
  const isStandard = file === standardStream
  if (isStandard && terminal.output.isTTY) {
    throw new WrongConfig(['A backup is not for a terminal: name a file or redirect the output.'])
  }
  if (!isStandard) requireOtherFile(file, location)
  const report = startProgress('backup', 'pages', call)
  const { plants, tokens } = await writeBackup(file, terminal, (draft) =>
    copyDatabase(location.path, draft, (done, total) => report(done, { done, total })),
  )
  const pruned = keep && newest && prune(path, newest, keep)
  const name = isStandard ? 'standard output' : file
  const removed = pruned ? [`Removed: ${toCount(pruned, 'older backups')}.`] : []
  const done = `Backed up: ${toCount(plants, 'plants')} and ${toCount(tokens, 'tokens')} in ${name}, checked.`
  return { remarks: flags.quiet ? [] : [done, ...removed] }
}

/** Writes what `copy` makes. SQLite writes out of order, so a gzipped one is a plain file first. */
async function writeBackup(
  file: string,
  terminal: Terminal,
  copy: (draft: string) => Promise<FileSummary>,
): Promise<FileSummary> {
  const isStandard = file === standardStream
  if (!isStandard && !file.endsWith('.gz')) return makeFile(file, 'refuse', copy)
  const beside = isStandard ? join(tmpdir(), 'plant-store-backup.db') : file
  const copying = withDraft(beside, async (plain) => {
    const summary = await copy(plain)
    await writeTo(file, createReadStream(plain), 'refuse', terminal)
    return summary
  })
  return copying.catch((error) => {
    throw explainWrite(isStandard ? `a temporary file in ${tmpdir()} (TMPDIR)` : file, error)
  })
}

/** The end of the name of a backup in a folder: its time. Before it is the name of the store. */
const ending = /-\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d-\d{3}Z\.db\.gz$/

function nameBackup(folder: string, database: string): string {
  // A folder that is missing may be a disk that is not mounted, so it is not made.
  explained(`Cannot keep backups in ${folder}`, exitCodes.config, () => readdirSync(folder))
  const time = new Date().toISOString().replaceAll(/[:.]/g, '-')
  return `${basename(database, extname(database))}-${time}.db.gz`
}

/**
 * Removes surplus backups, after a new one was made, and returns how many. Other files are never
 * touched, and neither are drafts: another process may be writing them.
 */
function prune(folder: string, newest: string, kept: number): number {
  const stem = newest.replace(ending, '')
  const isOwn = (name: string) => ending.test(name) && name.replace(ending, '') === stem
  const others = readdirSync(folder, { withFileTypes: true })
    .filter((entry) => entry.isFile() && isOwn(entry.name) && entry.name !== newest)
    .map(({ name }) => join(folder, name))
    .sort()
  // If the clock was set back, the new backup looks old. It is kept whatever its name.
  const surplus = others.slice(0, Math.max(0, others.length - (kept - 1)))
  for (const path of surplus) {
    const problem = `The backup was made, but ${path} cannot be removed`
    explained(problem, exitCodes.inputOutput, () => rmSync(path, { force: true }))
  }
  return surplus.length
}

function explained(problem: string, exitCode: number, act: () => unknown): void {
  try {
    act()
  } catch (error) {
    throw new CommandFailed(exitCode, `${problem}: ${explainErrno(error)}.`, { cause: error })
  }
}

const bytesPerMebibyte = 1024 * 1024
const useCopy =
  'A backup is restored to sqlite:PATH. To move it to PostgreSQL, restore it, then use: plant-store copy --from sqlite:PATH --to postgres://…. A dump of PostgreSQL itself is restored with pg_restore.'

/** Makes a store from a backup, gzipped or not, where there is none. */
export async function restoreBackup(call: Call<'restore'>): Promise<Printed> {
  const { storeLocation: location } = call.config
  const [file = ''] = call.args
  requirePersistent(location)
  if (location.engine === 'postgres') throw new UnusableStore(useCopy)
  const report = startProgress('restore', 'MiB', call)
  let bytes = 0
  const restoring = withInput(file, call.terminal, (input) => {
    requireRestorable(file, location.path)
    async function* read(): AsyncGenerator<Buffer> {
      for await (const chunk of decompress(input.chunks)) {
        yield chunk
        bytes += chunk.length
        report(Math.floor(bytes / bytesPerMebibyte), input.part())
      }
    }
    return restoreTo(location.path, read())
  })
  const { plants, tokens } = await restoring.catch((error: unknown) => {
    const name = file === standardStream ? 'Standard input' : file
    if (!(error instanceof UnusableBackup) && !isDamagedGzip(error)) throw error
    const fault =
      error instanceof UnusableBackup
        ? ` ${error.message}`
        : ': the gzip data is damaged or incomplete.'
    throw new CommandFailed(exitCodes.data, name + fault, { cause: error })
  })
  return {
    note: `Restored: ${toCount(plants, 'plants')} and ${toCount(tokens, 'tokens')} in ${location.label}, checked.`,
  }
}

/** Copies a backup to the path and checks it. A failure or a signal leaves nothing behind. */
async function restoreTo(path: string, chunks: AsyncIterable<Buffer>): Promise<FileSummary> {
  const newFolders: string[] = []
  function removeFolders(): void {
    try {
      for (const folder of newFolders.toReversed()) rmdirSync(folder)
    } catch {
      // Another restore may have put its store there meanwhile.
    }
  }
  process.on('exit', removeFolders)
  try {
    makeFolder(dirname(path), newFolders)
    return await makeFile(path, 'refuse', async (draft) => {
      await pipeline(chunks, createWriteStream(draft))
      const summary = checkBackup(draft)
      separateJournal(draft)
      return summary
    })
  } catch (error) {
    removeFolders()
    throw explainWrite(path, error)
  } finally {
    process.off('exit', removeFolders)
  }
}

/** Refuses a store with a WAL, whose content would be lost, and a path that is taken. */
function requireRestorable(file: string, path: string): void {
  const log = findWal(file)
  if (log !== undefined) {
    throw new CommandFailed(
      exitCodes.data,
      `${log} belongs to ${file}: this is a store that is in use or was not closed, not a backup. Start the service on it, or back it up.`,
    )
  }
  const obstacle = findObstacle(path)
  if (obstacle === undefined) return
  throw new CommandFailed(
    exitCodes.cannotCreate,
    `${obstacle} exists and was not changed. Restore to another path, or move it away.`,
  )
}
