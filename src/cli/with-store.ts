import type { Config } from '../config.ts'
import { openStore } from '../store/open.ts'
import type { Store } from '../store/store.ts'

/** Opens the store for one thing to do with it. */
export async function withStore<Value>(
  config: Config,
  use: (store: Store) => Promise<Value>,
): Promise<Value> {
  const store = await openStore(config.storeLocation)
  try {
    return await use(store)
  } finally {
    await store.close()
  }
}
