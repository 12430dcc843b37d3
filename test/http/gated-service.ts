import type { Timeouts } from '../../src/contract/limits.ts'
import { sqlite } from '../support/engines.ts'
import { releaseAfterTest } from '../support/release.ts'
import { startService } from '../support/service.ts'

/** Starts a service whose creates wait at a gate, without a timer that cuts their connections. */
export async function startGated(timeouts: Partial<Timeouts> = {}) {
  const gate = Promise.withResolvers<void>()
  const store = await sqlite.open(await sqlite.newUrl())
  const service = await startService('sqlite::memory:', {
    store: {
      ...store,
      createPlant: (plant) => gate.promise.then(() => store.createPlant(plant)),
    },
    timeouts: { stallTimeoutMs: 600_000, ...timeouts },
  })
  releaseAfterTest(gate.resolve)
  return { service, gate }
}
