import { before, describe } from 'node:test'
import { engines } from '../support/engines.ts'
import { testChanges } from './conformance/changes.ts'
import { testFaults } from './conformance/faults.ts'
import { testTransfers } from './conformance/imports-and-snapshots.ts'
import { testKeys } from './conformance/keys.ts'
import { testLists } from './conformance/lists.ts'
import { testPlants } from './conformance/plants.ts'
import type { Shared } from './conformance/shared.ts'
import { testTokens } from './conformance/tokens.ts'

const subjects = [
  testPlants,
  testLists,
  testChanges,
  testKeys,
  testTransfers,
  testTokens,
  testFaults,
]

/** The definition of an engine: anything that passes these tests. */
for (const engine of engines) {
  describe(`a store on ${engine.name}`, () => {
    const shared = {} as Shared
    before(async () => {
      shared.store = await engine.open(await engine.newUrl())
    })

    for (const testSubject of subjects) testSubject(engine, shared)
  })
}
