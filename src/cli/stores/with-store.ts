import type { Config } from '../../config.ts'
import { openStore } from '../../store/open.ts'
import type { Snapshot, Store } from '../../store/store.ts'
import { requireExisting } from './location.ts'

/** Opens the store, uses it and closes it. */
export async function withStore<Value>(
  { storeLocation }: Pick<Config, 'storeLocation'>,
  use: (store: Store) => Promise<Value>,
): Promise<Value> {
  const store = await openStore(storeLocation)
  try {
    return await use(store)
  } finally {
    await store.close()
  }
}

/** The same for a store that must exist. */
export async function withExistingStore<Value>(
  config: Config,
  use: (store: Store) => Promise<Value>,
): Promise<Value> {
  requireExisting(config)
  return withStore(config, use)
}

/** Opens a snapshot of the store, uses it and closes it. */
export async function withSnapshot<Value>(
  store: Store,
  use: (snapshot: Snapshot) => Promise<Value>,
): Promise<Value> {
  const snapshot = await store.openSnapshot()
  try {
    return await use(snapshot)
  } finally {
    await snapshot.close()
  }
}
