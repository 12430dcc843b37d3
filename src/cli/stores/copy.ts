import { WrongConfig } from '../../config.ts'
import { Failure } from '../../contract/errors.ts'
import { CopyConflict, copyPage, copyTokens, type Summary, summarize } from '../../store/copy.ts'
import { openStore, type StoreLocation, toStoreLocation } from '../../store/open.ts'
import type { Store, TokenRecord } from '../../store/store.ts'
import { CommandFailed, exitCodes } from '../exit.ts'
import { expectShortLives } from '../memory.ts'
import { type Progress, startProgress, toText } from '../progress.ts'
import { stopOnSignal, throwIfStopped } from '../signals.ts'
import type { Terminal } from '../terminal.ts'
import { isSameStore, requireExisting, requireKept } from './location.ts'
import { withSnapshot } from './with-store.ts'

export interface CopyFlags {
  readonly from: string
  readonly to: string
  readonly quiet?: boolean
}

/** Copies a store, tokens included, to another location and compares both. */
export async function copyStore(flags: CopyFlags, terminal: Terminal): Promise<void> {
  expectShortLives()
  const [from, to] = toLocations(flags)
  const signal = stopOnSignal()
  const source = await openStore(from)
  try {
    const destination = await openStore(to)
    const progress = startProgress('copy', 'plants', terminal, flags)
    const copying = copyAndCheck(source, destination, progress, signal).catch((error: unknown) => {
      throw explain(error, to)
    })
    const { plants, checksum } = await copying.finally(async () => {
      progress.stop()
      await destination.close()
    })
    if (flags.quiet) return
    terminal.tell(
      `Copied: ${toText(plants)} plants and the tokens; both stores have the checksum ${checksum}.`,
    )
  } finally {
    await source.close()
  }
}

async function copyAndCheck(
  source: Store,
  destination: Store,
  progress: Progress,
  signal: AbortSignal,
): Promise<Summary> {
  const [copied, tokens] = await withSnapshot(source, async (snapshot) => {
    const total = await snapshot.countPlants(undefined)
    let done = 0
    const summary = await summarize(snapshot, async (plants) => {
      throwIfStopped(signal, stopped)
      await copyPage(destination, plants)
      done += plants.length
      // The comparison is the other half of the work.
      progress.report(done, { done, total: 2 * total })
    })
    const found = await snapshot.listTokens()
    await copyTokens(destination, found)
    return [summary, found] as const
  })
  await withSnapshot(destination, async (snapshot) => {
    let done = 0
    const summary = await summarize(snapshot, (plants) => {
      throwIfStopped(signal, stopped)
      done += plants.length
      progress.report(done, { done: copied.plants + done, total: 2 * copied.plants })
    })
    requireSame(copied, summary, tokens, await snapshot.listTokens())
  })
  return copied
}

const howToContinue = 'Run the same command again to continue: copied plants are recognised.'
const stopped = `Stopped. ${howToContinue}`

function requireSame(
  source: Summary,
  destination: Summary,
  tokens: readonly TokenRecord[],
  copied: readonly TokenRecord[],
): void {
  const mistakes: string[] = []
  if (source.plants !== destination.plants) {
    mistakes.push(
      `the source has ${toText(source.plants)} plants, the destination ${toText(destination.plants)}`,
    )
  } else if (source.checksum !== destination.checksum) {
    mistakes.push(`the checksums differ: ${source.checksum} and ${destination.checksum}`)
  }
  const fingerprints = new Set(copied.map(toFingerprint))
  const missing = tokens.filter((token) => !fingerprints.has(toFingerprint(token))).length
  if (missing > 0) mistakes.push(`${toText(missing)} tokens differ or are missing`)
  if (mistakes.length === 0) return
  throw new CommandFailed(
    exitCodes.data,
    `The stores differ: ${mistakes.join('; ')}. Copy into an empty store while nothing writes to either.`,
  )
}

/** The members of a token that must be the same. Its last use is not: services go on noting it. */
function toFingerprint(token: TokenRecord): string {
  const { id, hash, name, scopes, createdAt, expiresAt, revokedAt } = token
  const isRevoked = revokedAt !== undefined
  return JSON.stringify([id, hash.toString('hex'), name, scopes, createdAt, expiresAt, isRevoked])
}

function toLocations({ from, to }: CopyFlags): [StoreLocation, StoreLocation] {
  const mistakes: string[] = []
  const [source, destination] = [
    ['--from', from],
    ['--to', to],
  ].map(([flag = '', text = '']) => {
    const location = toStoreLocation(text)
    if (location === undefined) {
      mistakes.push(`${flag} must be sqlite:PATH or postgres://USER:PASSWORD@HOST/DATABASE.`)
    }
    return location
  })
  if (mistakes.length > 0 || source === undefined || destination === undefined) {
    throw new WrongConfig(mistakes)
  }
  if (isSameStore(source, destination)) {
    throw new WrongConfig(['--from and --to name the same store.'])
  }
  requireExisting({ storeLocation: source })
  requireKept({ storeLocation: destination })
  return [source, destination]
}

function explain(error: unknown, to: StoreLocation): unknown {
  if (error instanceof CopyConflict) {
    const message = `Plant ${error.id} has different content in ${to.label} and was not changed there. Copy into an empty store.`
    return new CommandFailed(exitCodes.data, message)
  }
  if (error instanceof Failure) {
    return new CommandFailed(exitCodes.inputOutput, `${error.message} ${howToContinue}`)
  }
  return error
}
