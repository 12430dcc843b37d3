import { createReadStream, createWriteStream } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pipeline } from 'node:stream/promises'
import { createGzip } from 'node:zlib'
import { type Config, WrongConfig } from '../../config.ts'
import { backUpStore } from '../../store/backup.ts'
import type { StoreLocation } from '../../store/open.ts'
import type { FileSummary } from '../../store/store.ts'
import { standardStream } from '../files/input.ts'
import { explainWrite, makeFile, removeDraft, writeOut } from '../files/output.ts'
import { type Progress, startProgress, toCount } from '../progress.ts'
import { stopOnSignal, throwIfStopped } from '../signals.ts'
import type { Terminal } from '../terminal.ts'
import { openBackupFolder } from './backup-folder.ts'
import { requireExisting } from './location.ts'

/** A backup that is being made. */
interface Job {
  readonly location: StoreLocation
  readonly progress: Progress
  readonly signal: AbortSignal
}

export interface BackupFlags {
  readonly quiet?: boolean
  readonly keep?: string
}

/**
 * Copies the store into one file, a folder or to standard output, while others may use it.
 */
export async function backUp(
  path: string,
  flags: BackupFlags,
  config: Config,
  terminal: Terminal,
): Promise<void> {
  requireExisting(config)
  const folder =
    flags.keep === undefined ? undefined : openBackupFolder(path, flags.keep, config.storeLocation)
  const file = folder?.file ?? path
  const isStandard = file === standardStream
  if (isStandard && terminal.output.isTTY) {
    throw new WrongConfig(['A backup is not for a terminal: name a file or redirect the output.'])
  }
  const signal = stopOnSignal()
  const progress = startProgress('backup', 'pages', terminal, flags)
  const job = { location: config.storeLocation, progress, signal }
  const make = file.endsWith('.gz') ? copyGzipped : copyPlain
  const making = isStandard
    ? stream(terminal, job)
    : makeFile(file, 'refuse', signal, (draft) => make(draft, job))
  const { plants, tokens } = await making.catch(rethrow(signal)).finally(progress.stop)
  const pruned = await folder?.prune()
  if (flags.quiet) return
  const name = isStandard ? 'standard output' : file
  terminal.tell(
    `Backed up: ${toCount(plants, 'plants')} and ${toCount(tokens, 'tokens')} in ${name}, checked.`,
  )
  if (pruned) terminal.tell(`Removed: ${toCount(pruned, 'older backups')}.`)
}

const stopped = 'Stopped: nothing was kept. Run the command again.'

/** A signal breaks off streams with an error of their own. */
function rethrow(signal: AbortSignal): (error: unknown) => never {
  return (error) => {
    throwIfStopped(signal, stopped)
    throw error
  }
}

function copyPlain(draft: string, { location, progress, signal }: Job): Promise<FileSummary> {
  return backUpStore(location, draft, (done, total) => {
    throwIfStopped(signal, stopped)
    progress.report(done, { done, total })
  })
}

async function copyGzipped(draft: string, job: Job): Promise<FileSummary> {
  const plain = `${draft}-plain`
  try {
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
  const folder = await mkdtemp(join(tmpdir(), 'plant-store-backup-'))
  try {
    const draft = join(folder, 'backup.db')
    const summary = await copyPlain(draft, job).catch((error: unknown) => {
      throw explainWrite(draft, error)
    })
    await writeOut(createReadStream(draft), output, job.signal)
    return summary
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}
