import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { type BatcherBounds, buildBatcher } from '../../src/store/batcher.ts'

const bounds: BatcherBounds = {
  batchItems: 3,
  queueItems: 10,
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
      (writes: number[]) => {
        batches.push(writes)
        return writes.map((write) => write * 2)
      },
      { ...bounds, ...overrides },
    )
    return { group, batches }
  }

  it('commits the writes of one turn in one batch, in order, and answers each', async () => {
    const { group, batches } = record()
    const outcomes = await Promise.all([1, 2, 3].map((write) => group.submit(write)))
    assert.deepEqual(outcomes, [2, 4, 6])
    assert.deepEqual(batches, [[1, 2, 3]])
  })

  it('bounds a batch in writes', async () => {
    const { group, batches } = record()
    await Promise.all([1, 2, 3, 4].map((write) => group.submit(write)))
    assert.deepEqual(batches, [[1, 2, 3], [4]])
  })

  it('refuses a write at once when the queue holds as many as it may', async () => {
    const { group } = record({ queueItems: 2 })
    const waiting = [group.submit(1), group.submit(1)]
    assert.equal(group.isFull(), true)
    await assert.rejects(async () => group.submit(1), { number: 50300 })
    assert.deepEqual(await Promise.all(waiting), [2, 2])
    assert.equal(group.isFull(), false)
  })

  it('fails every write of a failed batch, and no other', async () => {
    let commits = 0
    const group = buildBatcher((writes: number[]) => {
      if (++commits === 1) throw new Error('no')
      return writes.map(() => 'stored')
    }, bounds)
    const outcomes = await Promise.allSettled([1, 2, 3, 4].map((write) => group.submit(write)))
    assert.deepEqual(
      outcomes.map(({ status }) => status),
      ['rejected', 'rejected', 'rejected', 'fulfilled'],
    )
  })

  it('keeps no more batches in flight than it may', async () => {
    const begun: (() => void)[] = []
    const group = buildBatcher(
      (writes: number[]) => new Promise<unknown[]>((resolve) => begun.push(() => resolve(writes))),
      { ...bounds, batchItems: 1, batchesInFlight: 2 },
    )
    const outcomes = Promise.all([1, 2, 3, 4, 5].map((write) => group.submit(write)))
    for (let finished = 0; finished < 5; finished++) {
      await letTurnsPass()
      assert.equal(begun.length, Math.min(finished + 2, 5))
      begun[finished]?.()
    }
    await outcomes
  })

  it('drains: resolves when no write waits any more', async () => {
    const { group, batches } = record()
    void group.submit(1)
    await group.drain()
    assert.deepEqual(batches, [[1]])
    await group.drain()
  })
})
