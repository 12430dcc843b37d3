import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import { limits } from '../../src/contract/limits.ts'
import { scale } from '../faults/lab/scale.ts'
import { engines } from '../support/engines.ts'
import { releaseAfterTest } from '../support/release.ts'
import { authorized, json, startService, type TestService } from '../support/service.ts'

/** What the store must hold: a plain map. */
interface Model {
  readonly plants: Map<number, { name: string; tag?: string; etag: string }>
  /** Every entity tag that was ever given out. */
  readonly tags: Set<string>
}

interface Real {
  readonly service: TestService
}

/** Which version a condition names: none, the current one, an unknown one, or any. */
type Condition = 'none' | 'current' | 'stale' | 'any'

const id = fc.integer({ min: 1, max: 6 })
const text = fc.oneof(
  { weight: 2, arbitrary: fc.constantFrom('', 'a', 'b', 'ü') },
  { weight: 1, arbitrary: fc.constantFrom("'; --", '{"a"}', '\\', '%_*', 'e\u0301', '\u{10ffff}') },
)
const tag = fc.option(text, { nil: undefined })
const order = fc.constantFrom('asc', 'desc')
const condition = fc.constantFrom<Condition>('none', 'current', 'stale', 'any')

function toBody(name: string, plantTag: string | undefined): { name: string; tag?: string } {
  return plantTag === undefined ? { name } : { name, tag: plantTag }
}

function toHeader(model: Model, key: number, wanted: Condition): string | undefined {
  const current = model.plants.get(key)?.etag ?? '"0"'
  return { none: undefined, current, stale: '"1"', any: '*' }[wanted]
}

function holds(model: Model, key: number, wanted: Condition): boolean {
  const exists = model.plants.has(key)
  return { none: true, current: exists, stale: false, any: exists }[wanted]
}

/** Checks that a new state has an entity tag of its own. */
function noteTag(model: Model, etag: string | undefined): string {
  assert.ok(etag !== undefined && !model.tags.has(etag), `the entity tag ${etag} came back`)
  model.tags.add(etag)
  return etag
}

function toCommand(title: string, run: (model: Model, real: Real) => Promise<void>) {
  return { check: () => true, run, toString: () => title }
}

/** The pages of a list, by following `Link`. */
async function* readPages({ call }: TestService, first: string) {
  for (let path: string | undefined = first; path !== undefined; ) {
    const { body, headers } = await call({ path })
    assert.ok(body.length <= limits.pageBytes)
    yield JSON.parse(body) as { id: number }[]
    path = /<([^>]+)>; rel="next"/.exec(headers.get('link') ?? '')?.[1]
  }
}

const commands = [
  fc.tuple(id, text, tag).map(([key, name, plantTag]) =>
    toCommand(`create ${key}`, async (model, { service }) => {
      const plant = toBody(name, plantTag)
      const answer = await service.create(JSON.stringify({ id: key, ...plant }))
      assert.equal(answer.status, model.plants.has(key) ? 409 : 200)
      if (answer.status !== 200) return
      assert.equal(answer.body, JSON.stringify(plant))
      model.plants.set(key, { ...plant, etag: noteTag(model, answer.headers.get('etag')) })
    }),
  ),
  fc.tuple(id, text, tag, condition).map(([key, name, plantTag, wanted]) =>
    toCommand(`replace ${key} if ${wanted}`, async (model, { service }) => {
      const plant = toBody(name, plantTag)
      const match = toHeader(model, key, wanted)
      const headers = match === undefined ? json : { ...json, 'If-Match': match }
      const answer = await service.call({
        method: 'PUT',
        path: `/plants/${key}`,
        headers,
        body: JSON.stringify(plant),
      })
      const expected = model.plants.has(key) ? 200 : 201
      assert.equal(answer.status, holds(model, key, wanted) ? expected : 412)
      if (answer.status === 412) return
      model.plants.set(key, { ...plant, etag: noteTag(model, answer.headers.get('etag')) })
    }),
  ),
  fc.tuple(id, condition).map(([key, wanted]) =>
    toCommand(`delete ${key} if ${wanted}`, async (model, { service }) => {
      const match = toHeader(model, key, wanted)
      const headers = match === undefined ? authorized : { ...authorized, 'If-Match': match }
      const { status } = await service.call({ method: 'DELETE', path: `/plants/${key}`, headers })
      const expected = holds(model, key, wanted) ? 204 : 412
      assert.equal(status, model.plants.has(key) ? expected : 404)
      if (status === 204) model.plants.delete(key)
    }),
  ),
  id.map((key) =>
    toCommand(`get ${key}`, async (model, { service }) => {
      const answer = await service.call({ path: `/plants/${key}` })
      const plant = model.plants.get(key)
      assert.equal(answer.status, plant ? 200 : 404)
      if (plant === undefined) return
      const { etag, ...content } = plant
      assert.deepEqual(JSON.parse(answer.body), { id: key, ...content })
      assert.equal(answer.headers.get('etag'), etag)
      const again = await service.call({
        path: `/plants/${key}`,
        headers: { 'If-None-Match': etag },
      })
      assert.equal(again.status, 304)
    }),
  ),
  fc.tuple(fc.integer({ min: 1, max: 3 }), tag, tag, order).map(([limit, wanted, part, way]) =>
    toCommand(
      `list by ${limit}, ${way}${wanted === undefined ? '' : ` with ${wanted}`}, named ${part}`,
      async (model, { service }) => {
        const byTag = wanted === undefined ? '' : `&tag=${encodeURIComponent(wanted)}`
        const byName = part === undefined ? '' : `&name=${encodeURIComponent(part.toUpperCase())}`
        const found: unknown[] = []
        const query = `limit=${limit}&order=${way}${byTag}${byName}`
        for await (const page of readPages(service, `/plants?${query}`)) {
          assert.ok(page.length <= limit)
          if (part === undefined)
            assert.ok(page.length > 0 || found.length === 0, 'a link leads to an empty page')
          found.push(...page)
        }
        const expected = [...model.plants]
          .filter(([, plant]) => wanted === undefined || plant.tag === wanted)
          .filter(([, plant]) => plant.name.includes(part ?? ''))
          .sort(([a], [b]) => (way === 'asc' ? a - b : b - a))
          .map(([key, { etag: _, ...plant }]) => ({ id: key, ...plant }))
        assert.deepEqual(found, expected)
      },
    ),
  ),
]

for (const engine of engines) {
  describe(`any sequence of operations on ${engine.name}`, () => {
    it('leaves what a plain map would hold, and uses no entity tag twice', async () => {
      const service = await startService(await engine.newUrl())
      const tags = new Set<string>()
      await fc.assert(
        fc.asyncProperty(fc.commands(commands, { maxCommands: 30 }), async (sequence) => {
          for (let key = 1; key <= 6; key++)
            await service.call({ method: 'DELETE', path: `/plants/${key}` })
          await fc.asyncModelRun(
            () => ({ model: { plants: new Map(), tags }, real: { service } }),
            sequence,
          )
        }),
        { numRuns: scale(8, 400) },
      )
    })

    it('shows a lasting plant on exactly one page, while others come and go', async () => {
      const service = await startService(await engine.newUrl())
      const stays = Array.from({ length: 200 }, (_, index) => index * 10)
      await Promise.all(stays.map((key) => service.create(`{"id":${key},"name":"stays"}`)))
      let isStopped = false
      const changing = (async () => {
        for (let round = 0; !isStopped; round++) {
          const key = (round * 37) % 2_000
          if (key % 10 === 0) continue
          await service.create(`{"id":${key},"name":"goes"}`)
          if (round % 2) await service.call({ method: 'DELETE', path: `/plants/${key}` })
        }
      })()
      releaseAfterTest(() => {
        isStopped = true
        return changing
      })
      const seen: number[] = []
      for await (const page of readPages(service, '/plants?limit=7')) {
        seen.push(...page.map((plant) => plant.id))
      }
      assert.equal(new Set(seen).size, seen.length)
      const lasting = seen.filter((key) => key % 10 === 0)
      assert.deepEqual(lasting, stays)
    })

    it('links to a page with a tag as long as a URL can hold', async () => {
      const service = await startService(await engine.newUrl())
      const tag = '/:@ ,;$?'.repeat(1_000)
      for (const id of [1, 2]) await service.create(JSON.stringify({ id, name: 'x', tag }))
      const query = tag.replaceAll(' ', '+')
      const pages = await Array.fromAsync(readPages(service, `/plants?limit=1&tag=${query}`))
      const ids = pages.flat().map((plant) => plant.id)
      assert.deepEqual(ids, [1, 2])
    })

    it('ends a page at 1 MiB, and links to the next one', async () => {
      const service = await startService(await engine.newUrl())
      const name = 'x'.repeat(400_000)
      // Earlier releases stored plants of up to 1 MiB.
      for (let id = 1n; id <= 5n; id++) await service.store.createPlant({ id, name, tag: 'large' })
      const longest = 'x'.repeat(limits.pageBytes - 40)
      await service.store.createPlant({ id: 6n, name: longest, tag: 'large' })
      for (const filter of ['', '&tag=large', '&name=X']) {
        const pages = await Array.fromAsync(readPages(service, `/plants?limit=4${filter}`))
        const ids = pages.map((page) => page.map((plant) => plant.id))
        assert.deepEqual(ids, [[1, 2], [3, 4], [5], [6]])
      }
    })

    it('ends a page of finds at 1 MiB of JSON, and continues after the last of them', async () => {
      const service = await startService(await engine.newUrl())
      // As JSON, each of them is larger than a page.
      const name = '\u0001'.repeat(300_000)
      for (const id of [1n, 2n, 3n]) await service.store.createPlant({ id, name })
      const { body, headers } = await service.call({ path: '/plants?name=%01&limit=9' })
      assert.equal(JSON.parse(body).length, 1)
      assert.equal(headers.get('link'), '</plants?limit=9&after=1&name=%01>; rel="next"')
    })
  })
}
