import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { type BatcherBounds, buildBatcher } from '../../src/store/batcher.ts'

const bounds: BatcherBounds = {
  batchItems: 3,
  batchBytes: 100,
  queueItems: 10,
  queueBytes: 1_000,
  batchesInFlight: 1,
}

describe('a group commit', () => {
  function record(overrides: Partial<BatcherBounds> = {}) {
    const batches: number[][] = []
    const group = buildBatcher(
      (writes: { bytes: number }[]) => {
        batches.push(writes.map(({ bytes }) => bytes))
        return writes.map(({ bytes }) => bytes * 2)
      },
      { ...bounds, ...overrides },
    )
    return { group, batches }
  }

  it('puts writes of one turn into one batch, in order, and answers each', async () => {
    const { group, batches } = record()
    const outcomes = await Promise.all([1, 2, 3].map((bytes) => group.submit({ bytes })))
    assert.deepEqual(outcomes, [2, 4, 6])
    assert.deepEqual(batches, [[1, 2, 3]])
  })

  function recordWithCompany(commitDelayMs: number) {
    const batches: number[] = []
    const group = buildBatcher(
      (writes: { bytes: number }[]) => {
        batches.push(writes.length)
        return writes
      },
      bounds,
      () => commitDelayMs,
    )
    const submit = (count: number) =>
      Promise.all(Array.from({ length: count }, () => group.submit({ bytes: 1 })))
    return { submit, batches }
  }

  it('gives the callers of a batch the time to come back, until as many wait as it had', async () => {
    const { submit, batches } = recordWithCompany(100_000)
    await submit(3)
    const early = submit(1)
    for (let turn = 0; turn < 5; turn++) await new Promise((resolve) => setImmediate(resolve))
    assert.deepEqual(batches, [3])
    await Promise.all([early, submit(2)])
    assert.deepEqual(batches, [3, 3])
  })

  it('does not wait for those who do not come back, nor for anybody behind a lone write', async () => {
    const { submit, batches } = recordWithCompany(5)
    await submit(3)
    await submit(1)
    assert.deepEqual(batches, [3, 1])
    const alone = recordWithCompany(100_000)
    for (let count = 0; count < 5; count++) await alone.submit(1)
    assert.deepEqual(alone.batches, [1, 1, 1, 1, 1])
  })

  it('does not wait for company when enough came during the batch before', async () => {
    const commit = async (writes: { bytes: number }[]) => writes
    const group = buildBatcher(commit, { ...bounds, batchItems: 1 }, () => 100_000)
    await Promise.all([group.submit({ bytes: 1 }), group.submit({ bytes: 1 })])
  })

  it('bounds a batch in writes', async () => {
    const { group, batches } = record()
    await Promise.all([1, 2, 3, 4].map((bytes) => group.submit({ bytes })))
    assert.deepEqual(batches, [[1, 2, 3], [4]])
  })

  it('bounds a batch in bytes, and lets one that is larger go alone', async () => {
    const { group, batches } = record()
    await Promise.all([60, 50, 500, 1].map((bytes) => group.submit({ bytes })))
    assert.deepEqual(batches, [[60], [50], [500], [1]])
  })

  it('refuses at once when as many writes wait as may wait', async () => {
    const { group } = record({ queueItems: 2 })
    const waiting = [group.submit({ bytes: 1 }), group.submit({ bytes: 1 })]
    assert.equal(group.isFull(), true)
    await assert.rejects(async () => group.submit({ bytes: 1 }), { number: 50300 })
    assert.deepEqual(await Promise.all(waiting), [2, 2])
    assert.equal(group.isFull(), false)
  })

  it('refuses at once when as many bytes wait as may wait', async () => {
    const { group } = record({ queueBytes: 10 })
    const waiting = group.submit({ bytes: 10 })
    await assert.rejects(async () => group.submit({ bytes: 1 }), { number: 50300 })
    await waiting
    assert.equal(await group.submit({ bytes: 1 }), 2)
  })

  it('fails every write of a batch that failed, and no other', async () => {
    let commits = 0
    const group = buildBatcher((writes: { bytes: number }[]) => {
      if (++commits === 1) throw new Error('no')
      return writes.map(() => 'stored')
    }, bounds)
    const outcomes = await Promise.allSettled([1, 2, 3, 4].map((bytes) => group.submit({ bytes })))
    assert.deepEqual(
      outcomes.map(({ status }) => status),
      ['rejected', 'rejected', 'rejected', 'fulfilled'],
    )
  })

  it('keeps no more batches in flight than it may', async () => {
    let inFlight = 0
    let most = 0
    const group = buildBatcher(
      async (writes: { bytes: number }[]) => {
        most = Math.max(most, ++inFlight)
        await new Promise((resolve) => setTimeout(resolve, 5))
        inFlight--
        return writes
      },
      { ...bounds, batchItems: 1, batchesInFlight: 2 },
    )
    await Promise.all([1, 2, 3, 4, 5].map((bytes) => group.submit({ bytes })))
    assert.equal(most, 2)
  })

  it('drains: resolves when nothing waits any more', async () => {
    const { group, batches } = record()
    void group.submit({ bytes: 1 })
    await group.drain()
    assert.deepEqual(batches, [[1]])
    await group.drain()
  })
})
