import { type Environment, WrongConfig } from '../../config.ts'
import { locateStore } from '../../store/locate.ts'
import type { StoreLocation } from '../../store/open.ts'
import { exists, isSameStore, requireKept, toName } from './location.ts'

/** The addresses of a copy, as the flags give them. */
export interface CopyLocations {
  readonly from: string
  readonly to: string
}

/** The source, which must exist, and the destination, which must be another store. */
export function toCopyLocations(
  { from, to }: CopyLocations,
  env: Environment,
): { readonly from: StoreLocation; readonly to: StoreLocation } {
  const located = [locateStore('--from', from, env), locateStore('--to', to, env)]
  const mistakes = located.flatMap(({ mistake }) => mistake ?? [])
  if (mistakes.length > 0) throw new WrongConfig(mistakes)
  const [source, destination] = located.map(({ location }) => location) as [
    StoreLocation,
    StoreLocation,
  ]
  if (isSameStore(source, destination)) {
    throw new WrongConfig(['--from and --to name the same store.'])
  }
  requireKept(source, '--from')
  requireKept(destination, '--to')
  if (!exists(source)) throw new WrongConfig([`--from: there is no store at ${toName(source)}.`])
  return { from: source, to: destination }
}
