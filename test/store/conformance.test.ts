import { describe } from 'node:test'
import { newDatabaseWith } from '../support/databases.ts'
import { type Engine, postgres, sqlite } from '../support/engines.ts'
import { testChanges } from './conformance/changes.ts'
import { testFaults } from './conformance/faults.ts'
import { testTransfers } from './conformance/imports-and-snapshots.ts'
import { testKeys } from './conformance/keys.ts'
import { testLists } from './conformance/lists.ts'
import { testPlants } from './conformance/plants.ts'
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

/** What a server, a database or a role may set for connections that do not ask for others. */
const defaults = {
  default_transaction_isolation: 'serializable',
  standard_conforming_strings: 'off',
  array_nulls: 'off',
  bytea_output: 'escape',
  client_encoding: 'LATIN1',
  DateStyle: "'German, DMY'",
  TimeZone: "'Asia/Kathmandu'",
  extra_float_digits: '-15',
  transform_null_equals: 'on',
  enable_indexscan: 'off',
}

const withOtherDefaults: Engine = {
  ...postgres,
  name: 'PostgreSQL with other defaults',
  newUrl: () => newDatabaseWith(defaults),
}

/** Opened before the first test: a file whose tests have all run is at its end. */
const stores = await Promise.all(
  [sqlite, withOtherDefaults].map(async (engine) => ({
    engine,
    store: await engine.open(await engine.newUrl()),
  })),
)

/** The definition of an engine: anything that passes these tests. */
for (const { engine, store } of stores) {
  describe(`a store on ${engine.name}`, () => {
    for (const testSubject of subjects) testSubject(engine, store)
  })
}
