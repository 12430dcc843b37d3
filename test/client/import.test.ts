import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { emptyReport } from '../../client/import-parts.ts'
import { type ImportReport, type NewPlant, PlantStore } from '../../client/index.ts'
import { operatorToken, startService } from '../support/service.ts'
import { answer, openScriptedServer } from './scripted-server.ts'

const service = await startService('sqlite::memory:')
const store = new PlantStore({ url: service.url, token: operatorToken })

describe('importPlants', () => {
  it('imports an iterable of several parts, exactly and in order', async () => {
    const first = 2n ** 62n
    const count = 6_000
    const long = 'x'.repeat(300)
    let parts = 0
    const counting: typeof fetch = (...request) => {
      parts++
      return fetch(...request)
    }
    const counted = new PlantStore({ url: service.url, token: operatorToken, fetch: counting })
    async function* plants(): AsyncGenerator<NewPlant> {
      for (let index = 0; index < count; index++) {
        const id = first + BigInt(index)
        yield index % 2 === 0 ? { id, name: long } : { id, name: '', tag: '"odd"' }
      }
    }
    const report = await counted.importPlants(plants())
    assert.deepEqual(report, { ...emptyReport, lines: count, stored: count })
    assert.ok(parts > 1, `${parts} requests`)
    let at = 0n
    for await (const { id } of store.list({ after: first - 1n })) assert.equal(id, first + at++)
    assert.equal(at, BigInt(count))
    const again = await store.importPlants(plants())
    assert.deepEqual(again, { ...emptyReport, lines: count, alreadyThere: count })
  })

  it('names refused plants by their place among all plants, with exact ids', async () => {
    const id = 2n ** 61n + 1n
    const name = 'x'.repeat(1024)
    const plants = Array.from({ length: 2_500 }, (_, index) => ({ id: id + BigInt(index), name }))
    await store.create({ id: id + 2_000n, name: 'other' })
    const report = await store.importPlants([
      ...plants,
      { id: 2n ** 63n, name: 'too large' },
      { id: 1n, name: 'a\0b' },
    ])
    const { refused, ...counts } = report
    const { refused: _, ...expected } = { ...emptyReport, lines: 2_502, stored: 2_499 }
    assert.deepEqual(counts, { ...expected, conflicts: 1, invalid: 2, refusedInAll: 3 })
    const shown = refused.map(({ line, id, error }) => ({ line, id, error }))
    assert.deepEqual(shown, [
      { line: 2_001, id: id + 2_000n, error: 40900 },
      { line: 2_501, id: undefined, error: 40003 },
      { line: 2_502, id: 1n, error: 40003 },
    ])
  })

  it('stores a plant that follows more refused ones than one request may have', async () => {
    const nameless = { id: 1n } as NewPlant
    const count = 110_000
    const last = { id: 2n ** 60n, name: 'last' }
    const report = await store.importPlants([...Array(count).fill(nameless), last])
    const { lines, stored, invalid, refused, refusedInAll } = report
    assert.deepEqual({ lines, stored, invalid }, { lines: count + 1, stored: 1, invalid: count })
    assert.equal((await store.get(last.id))?.name, 'last')
    assert.equal(refusedInAll, count)
    const refusedLines = refused.map(({ line }) => line)
    assert.deepEqual(
      refusedLines,
      Array.from({ length: 1_000 }, (_, index) => index + 1),
    )
  })

  it('does with a plant of other content what onConflict says', async () => {
    for (const [onConflict, count, name] of [
      ['fail', { conflicts: 1, refusedInAll: 1 }, 'old'],
      ['skip', { skipped: 1 }, 'old'],
      ['replace', { replaced: 1 }, 'new'],
    ] as const) {
      await store.replace(7n, { name: 'old' })
      const report = await store.importPlants([{ id: 7n, name: 'new' }], { onConflict })
      assert.deepEqual({ ...report, refused: [] }, { ...emptyReport, lines: 1, ...count })
      assert.equal((await store.get(7n))?.name, name)
    }
  })

  it('sends nothing for no plants', async () => {
    const server = await openScriptedServer(answer(500, 'x'))
    const other = new PlantStore({ url: server.url, token: 'x' })
    assert.deepEqual(await other.importPlants([]), emptyReport)
    assert.equal(server.requests.length, 0)
  })

  it('stops reading its plants when a part fails', async () => {
    let isClosed = false
    function* plants(): Generator<NewPlant> {
      try {
        for (let id = 0n; ; id++) yield { id, name: 'x'.repeat(100_000) }
      } finally {
        isClosed = true
      }
    }
    const stranger = new PlantStore({ url: service.url, token: 'a-token-that-nobody-knows' })
    await assert.rejects(stranger.importPlants(plants()), { error: 40101 })
    assert.equal(isClosed, true)
  })

  it('refuses an id that is no bigint, and names its place', async () => {
    const plants = Array.from({ length: 2_500 }, (_, index) => ({
      id: BigInt(index),
      name: 'x'.repeat(1024),
    }))
    const wrong = { id: 1 as never, name: 'x' }
    await assert.rejects(store.importPlants([...plants, wrong]), {
      name: 'TypeError',
      message: 'Plant 2501 of the import: id must be a bigint, such as 1n, but is a number.',
    })
  })

  it('tells what is on disk after each part, however it ends', async () => {
    const mistake = new Error('mine')
    const first = 2n ** 59n
    function* plants(): Generator<NewPlant> {
      for (let id = first; id < first + 2_500n; id++) yield { id, name: 'x'.repeat(1024) }
      throw mistake
    }
    const reports: ImportReport[] = []
    const onProgress = (report: ImportReport) => reports.push(report)
    await assert.rejects(store.importPlants(plants(), { onProgress }), (error) => error === mistake)
    const listed = await Array.fromAsync(store.list({ after: first - 1n }))
    const there = listed.filter(({ id }) => id < first + 2_500n).length
    assert.deepEqual(reports.at(-1), { ...emptyReport, lines: there, stored: there })
    assert.ok(reports.length === 2 && there > 1_000, `${there} of ${reports.length} parts`)
  })
})
