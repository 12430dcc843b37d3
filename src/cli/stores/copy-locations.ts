import { explainLocation, WrongConfig } from '../../config.ts'
import { type StoreLocation, toStoreLocation } from '../../store/open.ts'
import { exists, isSameStore, requireKept, toName } from './location.ts'

/** The addresses of a copy, as the flags give them. */
export interface CopyLocations {
  readonly from: string
  readonly to: string
}

/** The source, which must exist, and the destination, which must be another store. */
export function toCopyLocations({ from, to }: CopyLocations): {
  readonly from: StoreLocation
  readonly to: StoreLocation
} {
  const source = toStoreLocation(from)
  const destination = toStoreLocation(to)
  if (source === undefined || destination === undefined) {
    const mistakes: string[] = []
    if (source === undefined) mistakes.push(`--from ${explainLocation(from)}.`)
    if (destination === undefined) mistakes.push(`--to ${explainLocation(to)}.`)
    throw new WrongConfig(mistakes)
  }
  if (isSameStore(source, destination)) {
    throw new WrongConfig(['--from and --to name the same store.'])
  }
  requireKept(source, '--from')
  requireKept(destination, '--to')
  if (!exists(source)) throw new WrongConfig([`--from: there is no store at ${toName(source)}.`])
  return { from: source, to: destination }
}
