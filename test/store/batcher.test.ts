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

/** Lets everything happen that is due in the next turns of the event loop. */
async function letTurnsPass(): Promise<void> {
  for (let turn = 0; turn < 5; turn++) await new Promise((resolve) => setImmediate(resolve))
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

  it('commits the writes of one turn in one batch, in order, and answers each', async () => {
    const { group, batches } = record()
    const outcomes = await Promise.all([1, 2, 3].map((bytes) => group.submit({ bytes })))
    assert.deepEqual(outcomes, [2, 4, 6])
    assert.deepEqual(batches, [[1, 2, 3]])
  })

  it('bounds a batch in writes', async () => {
    const { group, batches } = record()
    await Promise.all([1, 2, 3, 4].map((bytes) => group.submit({ bytes })))
    assert.deepEqual(batches, [[1, 2, 3], [4]])
  })

  it('bounds a batch in bytes, and commits a larger write alone', async () => {
    const { group, batches } = record()
    await Promise.all([60, 50, 500, 1].map((bytes) => group.submit({ bytes })))
    assert.deepEqual(batches, [[60], [50], [500], [1]])
  })

  it('refuses a write at once when the queue holds as many as it may', async () => {
    const { group } = record({ queueItems: 2 })
    const waiting = [group.submit({ bytes: 1 }), group.submit({ bytes: 1 })]
    assert.equal(group.isFull(), true)
    await assert.rejects(async () => group.submit({ bytes: 1 }), { number: 50300 })
    assert.deepEqual(await Promise.all(waiting), [2, 2])
    assert.equal(group.isFull(), false)
  })

  it('refuses a write at once when the queue holds as many bytes as it may', async () => {
    const { group } = record({ queueBytes: 10 })
    const waiting = group.submit({ bytes: 10 })
    await assert.rejects(async () => group.submit({ bytes: 1 }), { number: 50300 })
    await waiting
    assert.equal(await group.submit({ bytes: 1 }), 2)
  })

  it('fails every write of a failed batch, and no other', async () => {
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

  it('begins the next batch with the writes that one has left', async () => {
    const batches: number[][] = []
    const group = buildBatcher(
      (writes: { bytes: number }[]) => {
        batches.push(writes.map(({ bytes }) => bytes))
        return writes.slice(0, 2).map(({ bytes }) => `stored ${bytes}`)
      },
      { ...bounds, batchItems: 4 },
    )
    const outcomes = await Promise.all([1, 2, 3, 4, 5].map((bytes) => group.submit({ bytes })))
    const expected = [1, 2, 3, 4, 5].map((bytes) => `stored ${bytes}`)
    assert.deepEqual(outcomes, expected)
    assert.deepEqual(batches, [[1, 2, 3, 4], [3, 4, 5], [5]])
    await group.drain()
    const { queuedItems, queuedBytes } = group.measure()
    assert.deepEqual({ queuedItems, queuedBytes }, { queuedItems: 0, queuedBytes: 0 })
  })

  it('keeps no more batches in flight than it may', async () => {
    const begun: (() => void)[] = []
    const group = buildBatcher(
      (writes: { bytes: number }[]) =>
        new Promise<unknown[]>((resolve) => begun.push(() => resolve(writes))),
      { ...bounds, batchItems: 1, batchesInFlight: 2 },
    )
    const outcomes = Promise.all([1, 2, 3, 4, 5].map((bytes) => group.submit({ bytes })))
    for (let finished = 0; finished < 5; finished++) {
      await letTurnsPass()
      assert.equal(begun.length, Math.min(finished + 2, 5))
      begun[finished]?.()
    }
    await outcomes
  })

  it('drains: resolves when no write waits any more', async () => {
    const { group, batches } = record()
    void group.submit({ bytes: 1 })
    await group.drain()
    assert.deepEqual(batches, [[1]])
    await group.drain()
  })
})
