import { WrongConfig } from '../../config.ts'
import { type StoreLocation, toStoreLocation } from '../../store/open.ts'
import { isSameStore, requireExisting, requireKept } from './location.ts'

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
    const flags = [source === undefined && '--from', destination === undefined && '--to']
    throw new WrongConfig(
      flags
        .filter((flag) => flag !== false)
        .map((flag) => `${flag} must be sqlite:PATH or postgres://USER:PASSWORD@HOST/DATABASE.`),
    )
  }
  if (isSameStore(source, destination)) {
    throw new WrongConfig(['--from and --to name the same store.'])
  }
  requireExisting({ storeLocation: source })
  requireKept({ storeLocation: destination })
  return { from: source, to: destination }
}
