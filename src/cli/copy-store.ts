import { WrongConfig } from '../config.ts'
import { Failure } from '../contract/errors.ts'
import { isSameFile } from '../paths.ts'
import { locateStore, type StoreLocation } from '../store/open.ts'
import type { Store } from '../store/store.ts'
import { CopyRefused, copyStore as copyPlantsAndTokens } from '../transfer/copy.ts'
import type { Call, Printed } from './commands.ts'
import { toName, withStore } from './stores.ts'
import { CommandFailed, exitCodes, startProgress, toCount } from './terminal.ts'

/** Copies a store, tokens included, to another location and compares both. */
export async function copyStore(call: Call<'copy'>): Promise<Printed> {
  const { from, to } = toCopyLocations(call)
  const report = startProgress('copy', 'plants', call)
  const copyInto = (source: Store, copy: Store) =>
    copyPlantsAndTokens(source, copy, to.label, (done, total) =>
      report(Math.floor(done / 2), { done, total }),
    )

  function onNew(): never {
    throw new WrongConfig([`--from: there is no store at ${toName(from)}.`])
  }

  const copying = withStore(from, (source) => withStore(to, (copy) => copyInto(source, copy), {}), {
    onNew,
  })
  const { plants, checksum } = await copying.catch((error) => {
    if (error instanceof CopyRefused) throw new CommandFailed(exitCodes.data, error.message)
    if (!(error instanceof Failure)) throw error
    const message = `${error.message} Run the same command again to continue: copied plants are recognised.`
    throw new CommandFailed(exitCodes.inputOutput, message)
  })
  return {
    note: `Copied: ${toCount(plants, 'plants')} and the tokens; both stores have the checksum ${checksum}.`,
  }
}

/** The source and the destination, which must be another store. */
function toCopyLocations({ flags, env }: Call<'copy'>) {
  const located = [locateStore('--from', flags.from, env), locateStore('--to', flags.to, env)]
  const mistakes = located.flatMap(({ mistake }) => mistake ?? [])
  if (mistakes.length > 0) throw new WrongConfig(mistakes)
  const [from, to] = located.map(({ location }) => location) as [StoreLocation, StoreLocation]
  const isSame =
    from.engine === 'sqlite' && to.engine === 'sqlite'
      ? isSameFile(from.path, to.path)
      : from.label === to.label
  if (isSame) throw new WrongConfig(['--from and --to name the same store.'])
  return { from, to }
}
