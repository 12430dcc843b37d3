import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { startService } from '../support/service.ts'
import { openSqliteStore } from '../support/stores.ts'

describe('a create whose id is taken', () => {
  it('reads the stored plant only for a condition', async () => {
    const store = openSqliteStore(':memory:')
    let reads = 0
    const service = await startService('sqlite::memory:', {
      store: {
        ...store,
        getPlant(id) {
          reads++
          return store.getPlant(id)
        },
      },
    })
    const plant = '{"id":1,"name":"x"}'
    assert.equal((await service.create(plant)).status, 200)
    assert.equal((await service.create(plant)).status, 409)
    assert.equal(reads, 0)
    assert.equal((await service.create(plant, { 'If-None-Match': '*' })).status, 412)
    assert.equal(reads, 1)
  })
})
