import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import {
  type JournalEvent,
  type OnConflict,
  type Position,
  type Store,
  toPlant,
} from '../../src/store/store.ts'
import { engines } from '../support/engines.ts'

const maxId = 5
const id = fc.bigInt({ min: 1n, max: BigInt(maxId) })
/** Which of two stores on one database: two processes. */
const side = fc.nat({ max: 1 })
const condition = fc.constantFrom(
  { match: undefined, noneMatch: undefined },
  { match: '*', noneMatch: undefined } as const,
  { match: undefined, noneMatch: '*' } as const,
  { match: [5n], noneMatch: undefined },
)

/** Makes a change with a name of its own. Answers the events that it must leave. */
type Write = (store: Store, name: string, run: string) => Promise<string[]>

const create = id.map(
  (key): Write =>
    async (store, name) =>
      (await store.createPlant({ id: key, name })) === 'exists' ? [] : [`created ${key} ${name}`],
)

/** A key has one plant in a run, so that it is replayed, unless it comes with another name. */
const createOnce = fc.record({ id, isReused: fc.boolean() }).map(
  ({ id: key, isReused }): Write =>
    async (store, name, run) => {
      const plant = { id: key, name: isReused ? name : run }
      const made = await store.createPlantOnce(plant, { tokenId: '', key: `${run} ${key}` })
      return typeof made === 'string' || made.isReplay ? [] : [`created ${key} ${plant.name}`]
    },
)

const replace = fc.record({ id, condition }).map(
  ({ id: key, condition: wanted }): Write =>
    async (store, name) => {
      const replaced = await store.replacePlant({ id: key, name }, wanted)
      return typeof replaced === 'string' ? [] : [`${replaced.kind} ${key} ${name}`]
    },
)

const remove = fc.record({ id, condition }).map(
  ({ id: key, condition: wanted }): Write =>
    async (store) =>
      (await store.deletePlant(key, wanted)) === 'deleted' ? [`deleted ${key}`] : [],
)

const importAll = fc
  .record({
    plants: fc.array(fc.record({ id, isOld: fc.boolean() }), { minLength: 1, maxLength: 4 }),
    onConflict: fc.constantFrom<OnConflict>('keep', 'replace'),
  })
  .map(
    ({ plants, onConflict }): Write =>
      async (store, name, run) => {
        const imported = plants.map((plant) => ({ id: plant.id, name: plant.isOld ? run : name }))
        const outcomes = await store.importPlants(imported, onConflict)
        const types = { stored: 'created', replaced: 'replaced', 'already there': '', conflict: '' }
        return imported.flatMap((plant, index) => {
          const type = types[outcomes[index] ?? 'conflict']
          return type === '' ? [] : [`${type} ${plant.id} ${plant.name}`]
        })
      },
  )

const write = fc.oneof(create, createOnce, replace, remove, importAll)
const read = fc.record({ follower: fc.nat(), side, limit: fc.integer({ min: 1, max: 4 }) })

/** Things that happen at once: writes, pages that followers read, followers that come and go. */
const step = fc.record({
  writes: fc.array(fc.record({ write, side }), { maxLength: 5 }),
  reads: fc.array(read, { maxLength: 4 }),
  comes: fc.option(fc.record({ side, from: fc.nat() })),
  goes: fc.option(fc.nat()),
})

type Step = typeof step extends fc.Arbitrary<infer One> ? One : never

interface Follower {
  readonly begin: Position
  position: Position
  readonly events: JournalEvent[]
}

async function readPage(store: Store, follower: Follower, limit: number): Promise<number> {
  const page = await store.readJournal(follower.position, limit)
  assert.ok(typeof page === 'object', `the journal answers "${page}"`)
  assert.ok(page.events.length <= limit)
  follower.events.push(...page.events)
  follower.position = page.end
  return page.events.length
}

function newFollower(begin: Position): Follower {
  return { begin, position: begin, events: [] }
}

function toText(event: JournalEvent): string {
  const { type } = event
  const plant = toPlant(event)
  const kind = type.replace('plant.', '')
  return kind === 'deleted' ? `${kind} ${plant.id}` : `${kind} ${plant.id} ${plant.name}`
}

/** Applies the events to an empty map. */
function replay(events: readonly JournalEvent[]): [bigint, string][] {
  const plants = new Map<bigint, string>()
  for (const event of events) {
    const { type } = event
    const plant = toPlant(event)
    assert.equal(plants.has(plant.id), type !== 'plant.created', `${type} of ${plant.id}`)
    if (type === 'plant.deleted') assert.equal(plants.get(plant.id), plant.name)
    if (type === 'plant.deleted') plants.delete(plant.id)
    else plants.set(plant.id, plant.name)
  }
  return [...plants].sort(([a], [b]) => Number(a - b))
}

let runs = 0

async function check(stores: readonly [Store, Store], steps: readonly Step[]) {
  const [store] = stores
  const run = `run ${runs++}`
  for (let key = 1n; key <= maxId; key++)
    await store.deletePlant(key, { match: undefined, noneMatch: undefined })
  const begin = (await store.journalEnd()) as Position
  const made: string[][] = []
  const all: Follower[] = [newFollower(begin)]
  const present = [...all]
  const latest: [Position, count: number][] = []
  let writes = 0
  for (const { writes: writing, reads, comes, goes } of steps) {
    if (comes !== null) {
      const places = all.flatMap(({ events }) => events.map(({ position }) => position))
      const end = (await stores[comes.side]?.journalEnd()) as Position
      latest.push([end, made.flat().length])
      const follower = newFollower([begin, end, ...places][comes.from % (places.length + 2)] ?? end)
      all.push(follower)
      present.push(follower)
    }
    if (goes !== null) present.splice(goes % present.length, 1)
    const writesOfStep = writing.map((one) =>
      one.write(stores[one.side] ?? store, `${run}, write ${writes++}`, run),
    )
    const byFollower = Map.groupBy(reads, ({ follower }) => follower % present.length)
    const readsOfStep = [...byFollower].map(async ([index, pages]) => {
      for (const page of pages) {
        const follower = present[index]
        if (follower) await readPage(stores[page.side] ?? store, follower, page.limit)
      }
    })
    made.push((await Promise.all(writesOfStep)).flat())
    await Promise.all(readsOfStep)
  }
  const whole = newFollower(begin)
  while ((await readPage(store, whole, 1_000)) > 0);
  const { events } = whole
  let first = 0
  for (const expected of made) {
    const found = events.slice(first, first + expected.length)
    assert.deepEqual(found.map(toText).sort(), expected.sort())
    first += expected.length
  }
  assert.equal(events.length, first)
  const { plants } = await store.listPlants({ after: undefined, tag: undefined, limit: 100 })
  assert.deepEqual(
    replay(events),
    plants.map((plant) => [plant.id, plant.name]),
  )
  const positions = [begin, ...events.map(({ position }) => position)]
  assert.equal(new Set(positions).size, positions.length)
  for (const [end, count] of latest) assert.equal(positions.indexOf(end), count)
  for (const follower of all) {
    if (present.includes(follower)) while ((await readPage(stores[1], follower, 3)) > 0);
    const from = positions.indexOf(follower.begin)
    assert.ok(from !== -1, `a follower began at ${follower.begin}`)
    const count = present.includes(follower) ? events.length : follower.events.length
    assert.deepEqual(follower.events, events.slice(from, from + count))
  }
}

for (const engine of engines) {
  describe(`any history on ${engine.name}`, () => {
    it('is what followers see that come and go, each change once and in order', async () => {
      const url = await engine.newUrl()
      const stores = [await engine.open(url), await engine.open(url)] as const
      await fc.assert(
        fc.asyncProperty(fc.array(step, { minLength: 1, maxLength: 12 }), (steps) =>
          check(stores, steps),
        ),
        { numRuns: Number(process.env.MODEL_RUNS ?? 15), interruptAfterTimeLimit: 20_000 },
      )
    })
  })
}
