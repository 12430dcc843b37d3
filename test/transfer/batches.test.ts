import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { importEntries, type Put } from '../../src/transfer/import-entries.ts'
import type { Entry } from '../../src/transfer/lines.ts'

const { signal } = new AbortController()

function toEntry(id: number): Entry {
  return { line: id, text: '', plant: { id: BigInt(id), name: 'a' } }
}

function toInvalid(line: number): Entry {
  return { line, text: '', refusal: { error: 40001, message: 'wrong' } }
}

async function* toGroups(...groups: Entry[][]): AsyncGenerator<Entry[]> {
  yield* groups
}

/** Imports entries, two at a time, into a target that answers late. */
async function importAll(entries: AsyncIterable<Entry[]>, refusedLimit = Infinity) {
  const events: string[] = []
  const put: Put = async (plants) => {
    const ids = plants.map(({ id }) => id).join('+')
    events.push(`begin ${ids}`)
    for (let turn = 0; turn < 5; turn++) await new Promise(setImmediate)
    events.push(`end ${ids}`)
    if (plants.some(({ id }) => id === 13n)) throw new Error('the target failed')
    return plants.map(({ id }) => (id === 7n ? 'conflict' : 'stored'))
  }
  const job = { put, rule: 'fail', signal, batchEntries: 2, refusedLimit } as const
  const { error, ...tally } = await importEntries(entries, job)
  const { report } = tally
  return { events, report, tally, error: error && (error as Error).message }
}

describe('the batches of an import', () => {
  it('are bounded, in flight two at a time, and counted in order', async () => {
    const { events, report } = await importAll(toGroups([1, 2, 3, 4, 5].map(toEntry)))
    const order = ['begin 1+2', 'begin 3+4', 'end 1+2', 'begin 5', 'end 3+4', 'end 5']
    assert.deepEqual(events, order)
    assert.equal(report.stored, 5)
  })

  it('are never in flight together when they share an id: their order decides', async () => {
    const { events } = await importAll(toGroups([1, 2, 3].map(toEntry), [toEntry(2)]))
    assert.deepEqual(events, ['begin 1+2', 'end 1+2', 'begin 3+2', 'end 3+2'])
  })

  it('are not begun after one that failed, whose lines are named', async () => {
    const { events, report, tally, error } = await importAll(
      toGroups([13, 2, 3, 4, 5, 6].map(toEntry)),
    )
    assert.deepEqual(events, ['begin 13+2', 'begin 3+4', 'end 13+2', 'end 3+4'])
    assert.deepEqual(tally.failed, [{ first: 13, last: 2, mayBeStored: true }])
    assert.deepEqual([report.stored, error], [2, 'the target failed'])
  })

  it('are stored before the failure of their source is told', async () => {
    async function* cutShort(): AsyncGenerator<Entry[]> {
      yield [1, 2, 3].map(toEntry)
      throw new Error('the source failed')
    }
    const { report, error } = await importAll(cutShort())
    assert.equal(report.stored, 3)
    assert.equal(error, 'the source failed')
  })

  it('end with the line that is one too many, and nothing after it is stored', async () => {
    const lines = [toEntry(1), toInvalid(2), toEntry(3), toInvalid(4), toEntry(5), toEntry(6)]
    const { report } = await importAll(toGroups(lines), 2)
    assert.deepEqual([report.endedAtLine, report.stored, report.refusedInAll], [4, 2, 2])
    // A conflict is known once its batch is stored.
    const known = await importAll(toGroups([7, 1, 2, 3, 4, 5, 6, 8].map(toEntry)), 1)
    assert.deepEqual([known.report.endedAtLine, known.report.stored], [6, 6])
  })
})
