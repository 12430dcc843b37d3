import { setImmediate as nextTurn } from 'node:timers/promises'
import { type Environment, WrongConfig } from '../config.ts'
import { Failure } from '../contract/errors.ts'
import {
  CopyConflict,
  copyPage,
  copyTokens,
  findUnexpected,
  type Summary,
  summarize,
} from '../store/copy.ts'
import { locateStore } from '../store/locate.ts'
import type { StoreLocation } from '../store/open.ts'
import type { Store, TokenRecord } from '../store/store.ts'
import { CommandFailed, exitCodes } from './exit.ts'
import { tuneHeap } from './memory.ts'
import { formatNumber, type Progress, startProgress, toCount } from './progress.ts'
import { stopOnSignal, throwIfStopped } from './signals.ts'
import {
  exists,
  isSameStore,
  requirePersistent,
  toName,
  withSnapshot,
  withStore,
} from './stores.ts'
import type { Terminal } from './terminal.ts'

export interface CopyFlags {
  readonly from: string
  readonly to: string
  readonly quiet?: boolean
}

/** Copies a store, tokens included, to another location and compares both. */
export async function copyStore(
  flags: CopyFlags,
  env: Environment,
  terminal: Terminal,
): Promise<void> {
  tuneHeap()
  const { from, to } = toCopyLocations(flags, env)
  const signal = stopOnSignal()
  const progress = startProgress('copy', 'plants', terminal, flags)

  async function copyFrom(source: Store): Promise<Summary> {
    return withStore(to, async (destination) => {
      await requireSubset(source, destination, to, signal)
      return copyAndCompare(source, destination, progress, signal)
    })
  }

  function onNew(): never {
    throw noSource(from)
  }

  const { plants, checksum } = await withStore(from, copyFrom, { onNew })
    .catch((error) => {
      throw toCopyFailure(error, to)
    })
    .finally(progress.stop)
  if (flags.quiet) return
  terminal.tell(
    `Copied: ${toCount(plants, 'plants')} and the tokens; both stores have the checksum ${checksum}.`,
  )
}

/** Refuses a destination that is neither empty nor an unfinished copy of the source. */
async function requireSubset(
  source: Store,
  destination: Store,
  to: StoreLocation,
  signal: AbortSignal,
): Promise<void> {
  const onPage = () => checkSignal(signal)
  const unexpected = await withSnapshot(destination, (there) =>
    withSnapshot(source, (here) => findUnexpected(here, there, onPage)),
  )
  if (unexpected === undefined) return
  throw new CommandFailed(
    exitCodes.data,
    `${to.label} holds ${unexpected.kind} ${unexpected.id}, which the source does not have in this form. Nothing was copied: name an empty store.`,
  )
}

async function copyAndCompare(
  source: Store,
  destination: Store,
  progress: Progress,
  signal: AbortSignal,
): Promise<Summary> {
  const [copied, tokens] = await withSnapshot(source, async (snapshot) => {
    const total = await snapshot.countPlants(undefined)
    const summary = await summarize(snapshot, async (plants, done) => {
      await checkSignal(signal)
      await copyPage(destination, plants)
      // Every plant is read twice: to copy it and to compare it.
      progress.report(Math.floor(done / 2), { done, total: 2 * total })
    })
    return [summary, await snapshot.listTokens()] as const
  })
  const total = copied.plants
  await withSnapshot(destination, async (snapshot) => {
    const summary = await summarize(snapshot, async (_, done) => {
      await checkSignal(signal)
      progress.report(Math.floor((total + done) / 2), { done: total + done, total: 2 * total })
    })
    requireSamePlants(copied, summary)
  })
  // Last, because the tokens of the source give access to the destination.
  await copyTokens(destination, tokens)
  requireSameTokens(tokens, await destination.listTokens())
  return copied
}

const howToContinue = 'Run the same command again to continue: copied plants are recognised.'
const stopped = `Stopped. ${howToContinue}`

/** SQLite reads at once: without a turn of the event loop, no signal would ever be seen. */
async function checkSignal(signal: AbortSignal): Promise<void> {
  await nextTurn()
  throwIfStopped(signal, stopped)
}

function toCopyFailure(error: unknown, to: StoreLocation): unknown {
  if (error instanceof CopyConflict) {
    const message = `Plant ${error.id} changed in ${to.label} during the copy and was kept. Copy while nothing writes to either store.`
    return new CommandFailed(exitCodes.data, message)
  }
  if (error instanceof Failure) {
    return new CommandFailed(exitCodes.inputOutput, `${error.message} ${howToContinue}`)
  }
  return error
}

/** The source, which must exist, and the destination, which must be another store. */
function toCopyLocations(
  { from, to }: CopyFlags,
  env: Environment,
): { readonly from: StoreLocation; readonly to: StoreLocation } {
  const { location: source, mistake } = locateStore('--from', from, env)
  const { location: destination, mistake: second } = locateStore('--to', to, env)
  if (source === undefined || destination === undefined) {
    throw new WrongConfig([mistake, second].filter((one) => one !== undefined))
  }
  if (isSameStore(source, destination)) {
    throw new WrongConfig(['--from and --to name the same store.'])
  }
  requirePersistent(source)
  requirePersistent(destination)
  if (!exists(source)) throw noSource(source)
  return { from: source, to: destination }
}

function noSource(source: StoreLocation): WrongConfig {
  return new WrongConfig([`--from: there is no store at ${toName(source)}.`])
}

/** Requires that a copy has the plants of its source. */
function requireSamePlants(source: Summary, copy: Summary): void {
  if (source.plants !== copy.plants) {
    throw different(
      `the source has ${toCount(source.plants, 'plants')}, the destination ${formatNumber(copy.plants)}`,
    )
  }
  if (source.checksum !== copy.checksum) {
    throw different(`the checksums differ: ${source.checksum} and ${copy.checksum}`)
  }
}

/** Requires that a copy has every token of its source, in the same state. */
function requireSameTokens(source: readonly TokenRecord[], copy: readonly TokenRecord[]): void {
  const fingerprints = new Set(copy.map(toFingerprint))
  const missing = source.filter((token) => !fingerprints.has(toFingerprint(token))).length
  if (missing > 0) throw different(`${toCount(missing, 'tokens')} missing or different`)
}

/** The members of a token that must be the same. Services keep updating its last use. */
function toFingerprint(token: TokenRecord): string {
  const { id, hash, name, scopes, createdAt, expiresAt, revokedAt } = token
  const isRevoked = revokedAt !== undefined
  return JSON.stringify([id, hash.toString('hex'), name, scopes, createdAt, expiresAt, isRevoked])
}

function different(how: string): CommandFailed {
  return new CommandFailed(
    exitCodes.data,
    `The stores differ: ${how}. Copy into an empty store while nothing writes to either.`,
  )
}
