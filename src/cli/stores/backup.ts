import { dirname } from 'node:path'
import type { Config } from '../../config.ts'
import { backUpStore, restoreStore } from '../../store/backup.ts'
import { makeFolder } from '../../store/sqlite/folder.ts'
import { makeFile } from '../files/output.ts'
import { startProgress, toText } from '../progress.ts'
import { stopOnSignal, throwIfStopped } from '../signals.ts'
import type { Terminal } from '../terminal.ts'
import { requireExisting, requireKept } from './location.ts'

/** Copies the store into one file, while others may use it. */
export async function backUp(
  file: string,
  flags: { readonly quiet?: boolean },
  config: Config,
  terminal: Terminal,
): Promise<void> {
  requireExisting(config)
  const { storeLocation } = config
  const signal = stopOnSignal()
  const progress = startProgress('backup', 'pages', terminal, flags)

  function onProgress(done: number, total: number): void {
    throwIfStopped(signal, 'Stopped: nothing was kept. Run the command again.')
    progress.report(done, { done, total })
  }

  const making = makeFile(file, 'refuse', signal, (draft) =>
    backUpStore(storeLocation, draft, onProgress),
  )
  const { plants, tokens } = await making.finally(progress.stop)
  if (flags.quiet) return
  terminal.tell(
    `Backed up: ${toText(plants)} plants and ${toText(tokens)} tokens in ${file}, checked.`,
  )
}

/** Makes a store from a backup, where there is none. */
export async function restoreBackup(
  file: string,
  { storeLocation }: Config,
  terminal: Terminal,
): Promise<void> {
  requireKept(storeLocation)
  const path = storeLocation.engine === 'sqlite' ? storeLocation.path : file
  if (storeLocation.engine === 'sqlite') makeFolder(dirname(path))
  const { plants, tokens } = await makeFile(path, 'refuse', stopOnSignal(), (draft) =>
    restoreStore(file, storeLocation, draft),
  )
  terminal.tell(
    `Restored: ${toText(plants)} plants and ${toText(tokens)} tokens in ${storeLocation.label}, checked.`,
  )
}
