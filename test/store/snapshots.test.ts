import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { limitSnapshots, maxSnapshots } from '../../src/store/snapshots.ts'
import { releaseAfterTest } from '../support/release.ts'
import { openSqliteStore } from '../support/stores.ts'

describe('a snapshot that cannot be opened', () => {
  it('does not count as open', async () => {
    const store = openSqliteStore(':memory:')
    let failures = maxSnapshots
    const open = limitSnapshots(async () => {
      if (failures-- > 0) throw new Error('not now')
      return store.openSnapshot()
    })
    for (let count = 0; count < maxSnapshots; count++) {
      await assert.rejects(open('tok_a'), /not now/)
    }
    const snapshot = await open('tok_a')
    releaseAfterTest(snapshot.close)
    assert.equal(await snapshot.countPlants(undefined), 0)
  })
})
