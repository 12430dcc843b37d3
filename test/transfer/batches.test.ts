import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { type PutBatch, putBatches, toBatches } from '../../src/transfer/batches.ts'
import type { Entry } from '../../src/transfer/entry.ts'

const { signal } = new AbortController()

function toEntry(id: number): Entry {
  return { line: id, text: '', plant: { id: BigInt(id), name: 'a' } }
}

async function* toGroups(...groups: Entry[][]): AsyncGenerator<Entry[]> {
  yield* groups
}

/** A target that answers late, and the order in which its batches began and ended. */
function newTarget() {
  const events: string[] = []
  const put: PutBatch = async (plants) => {
    const ids = plants.map(({ id }) => id).join('+')
    events.push(`begin ${ids}`)
    for (let turn = 0; turn < 5; turn++) await new Promise(setImmediate)
    events.push(`end ${ids}`)
    if (ids === '13') throw new Error('the target failed')
    return plants.map(() => ({ kind: 'stored' }))
  }
  return { put, events }
}

async function put(...groups: Entry[][]): Promise<string[]> {
  return putAll(toGroups(...groups))
}

async function putAll(groups: AsyncIterable<Entry[]>): Promise<string[]> {
  const { put, events } = newTarget()
  const lines = (entries: readonly Entry[]) => entries.map(({ line }) => line).join('+')
  await putBatches(groups, put, signal, {
    onSettled: (entries) => void events.push(`settle ${lines(entries)}`),
    onFailed: (entries) => void events.push(`fail ${lines(entries)}`),
  }).catch((error: Error) => events.push(error.message))
  return events
}

describe('the batches of an import', () => {
  it('are in flight two at a time, and settle in order', async () => {
    assert.deepEqual(await put([toEntry(1)], [toEntry(2)], [toEntry(3)]), [
      'begin 1',
      'begin 2',
      'end 1',
      'settle 1',
      'begin 3',
      'end 2',
      'settle 2',
      'end 3',
      'settle 3',
    ])
  })

  it('are never in flight together when they share an id: their order decides', async () => {
    assert.deepEqual(await put([toEntry(1), toEntry(2)], [toEntry(3), toEntry(2)], [toEntry(2)]), [
      'begin 1+2',
      'end 1+2',
      'settle 1+2',
      'begin 3+2',
      'end 3+2',
      'settle 3+2',
      'begin 2',
      'end 2',
      'settle 2',
    ])
  })

  it('are all settled by the time that the failure of one is thrown', async () => {
    assert.deepEqual(await put([toEntry(13)], [toEntry(2)]), [
      'begin 13',
      'begin 2',
      'end 13',
      'fail 13',
      'end 2',
      'settle 2',
      'the target failed',
    ])
  })

  it('are stored and settled before the failure of their source is thrown', async () => {
    async function* cutShort(): AsyncGenerator<Entry[]> {
      yield [toEntry(1), toEntry(2)]
      throw new Error('the source failed')
    }
    const stored = await putAll(toBatches(cutShort(), 100))
    assert.deepEqual(stored, ['begin 1+2', 'end 1+2', 'settle 1+2', 'the source failed'])
  })

  it('are bounded in entries', async () => {
    const entries = Array.from({ length: 205 }, (_, id) => toEntry(id))
    const batches = await Array.fromAsync(toBatches(toGroups(entries), 100))
    assert.deepEqual(
      batches.map(({ length }) => length),
      [100, 100, 5],
    )
  })
})
