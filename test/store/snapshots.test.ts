import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { limitSnapshots, maxSnapshots } from '../../src/store/snapshots.ts'

describe('a snapshot that cannot be opened', () => {
  it('takes no slot from the next ones', async () => {
    const open = limitSnapshots(() => Promise.reject(new Error('away')))
    for (let count = 0; count <= maxSnapshots; count++) {
      await assert.rejects(open('a token'), { message: 'away' })
    }
  })
})
