import type { Store } from '../../../src/store/store.ts'

/** The store that the tests of an engine share. It is opened before them. */
export interface Shared {
  store: Store
}
