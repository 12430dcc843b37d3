import { createWriteStream, rmdirSync } from 'node:fs'
import { dirname } from 'node:path'
import { pipeline } from 'node:stream/promises'
import {
  checkBackup,
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
  makeFile,
  standardStream,
  withInput,
} from './files.ts'
import { type Progress, startProgress, toCount } from './progress.ts'
import { stopOnSignal, throwIfStopped } from './signals.ts'
import { requirePersistent, requireSqlite } from './stores.ts'

const bytesPerMebibyte = 1024 * 1024
const useCopy =
  'A backup is restored to sqlite:PATH. To move it to PostgreSQL, restore it, then use: plant-store copy --from sqlite:PATH --to postgres://…. A dump of PostgreSQL itself is restored with pg_restore.'

/** Makes a store from a backup, gzipped or not, where there is none. */
export async function restoreBackup(
  call: Call<{ readonly quiet: boolean | undefined }, 'location'>,
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
