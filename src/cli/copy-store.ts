import { type Environment, WrongConfig } from '../config.ts'
import { Failure } from '../contract/errors.ts'
import { locateStore } from '../store/locate.ts'
import type { StoreLocation } from '../store/open.ts'
import { CopyRefused, copyStore as copyPlantsAndTokens } from '../transfer/copy.ts'
import type { Call, Printed } from './command.ts'
import { CommandFailed, exitCodes } from './exit.ts'
import type { copyFlags } from './flag-tables.ts'
import type { ValuesOf } from './flags.ts'
import { tuneHeap } from './memory.ts'
import { startProgress, toCount } from './progress.ts'
import { stopOnSignal, throwIfStopped } from './signals.ts'
import { exists, isSameStore, requirePersistent, toName, withStore } from './stores.ts'

/** Copies a store, tokens included, to another location and compares both. */
export async function copyStore(call: Call<typeof copyFlags, 'nothing'>): Promise<Printed> {
  tuneHeap()
  const { flags, env, terminal } = call
  const { from, to } = toCopyLocations(flags, env)
  const signal = stopOnSignal()
  const progress = startProgress('copy', 'plants', terminal, flags)
  const copying = {
    signal,
    to: to.label,
    onProgress: (done: number, total: number) =>
      progress.report(Math.floor(done / 2), { done, total }),
  }

  function onNew(): never {
    throw noSource(from)
  }

  const { plants, checksum } = await withStore(
    from,
    (source) => withStore(to, (copy) => copyPlantsAndTokens(source, copy, copying)),
    { onNew },
  )
    .catch((error) => {
      throwIfStopped(signal, `Stopped. ${howToContinue}`)
      throw toCopyFailure(error)
    })
    .finally(progress.stop)
  return {
    note: `Copied: ${toCount(plants, 'plants')} and the tokens; both stores have the checksum ${checksum}.`,
  }
}

const howToContinue = 'Run the same command again to continue: copied plants are recognised.'

function toCopyFailure(error: unknown): unknown {
  if (error instanceof CopyRefused) return new CommandFailed(exitCodes.data, error.message)
  if (!(error instanceof Failure)) return error
  return new CommandFailed(exitCodes.inputOutput, `${error.message} ${howToContinue}`)
}

/** The source, which must exist, and the destination, which must be another store. */
function toCopyLocations(
  { from, to }: ValuesOf<typeof copyFlags>,
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
