import assert from 'node:assert/strict'
import { it } from 'node:test'
import {
  type ImportReport,
  type NewPlant,
  type Plant,
  type PlantEvent,
  PlantStore,
  type Refusal,
  type StoredPlant,
} from '../../client/index.ts'
import { type OperationName, type Operations, operations } from '../../src/contract/operations.ts'
import { parameters } from '../../src/contract/parameters.ts'
import type { ValueOf } from '../../src/contract/schema.ts'

type SuccessOf<Name extends OperationName> =
  Operations[Name]['successes'][keyof Operations[Name]['successes']]
type BodyOf<Name extends OperationName> = Operations[Name] extends { body: { shape: infer Shape } }
  ? ValueOf<Shape>
  : never
type ResultOf<Name extends OperationName> =
  SuccessOf<Name> extends infer Success
    ? Success extends { body: { shape: infer Shape } }
      ? ValueOf<Shape>
      : never
    : never

/** Accepts only `true`: this file does not compile unless the client's shapes are the contract's. */
type Require<_Comparisons extends readonly true[]> = never
type Same<Own, Contract> = [Marked<Own>, Marked<Contract>] extends [Marked<Contract>, Marked<Own>]
  ? true
  : { own: Marked<Own>; contract: Marked<Contract> }
/** The members, marked by whether they are optional. */
type Marked<Value> = {
  [Name in keyof Value]-?: [Exclude<Value[Name], undefined>, Mark<Value, Name>]
}
type Mark<Value, Name extends keyof Value> =
  Record<never, never> extends Pick<Value, Name> ? 'optional' : 'required'

export type FollowsContract = Require<
  [
    Same<NewPlant, BodyOf<'createPlant'>>,
    Same<Plant, BodyOf<'replacePlant'>>,
    Same<Plant, ResultOf<'createPlant'>>,
    Same<StoredPlant, ResultOf<'getPlant'>>,
    Same<StoredPlant, ResultOf<'replacePlant'>>,
    Same<StoredPlant, ResultOf<'listPlants'>[number]>,
    // The parts of an import are too small to end early, have no header row, and are at hand.
    Same<
      Omit<ImportReport, 'refused'>,
      Omit<
        ResultOf<'importPlantsAsNdjson'>,
        'refused' | 'endedAtLine' | 'header' | 'ignoredColumns'
      >
    >,
    Same<PlantEvent, ResultOf<'listEvents'>[number]>,
    Same<Refusal, Omit<ResultOf<'importPlantsAsNdjson'>['refused'][number], 'text'>>,
  ]
>

const plant = { id: 1n, name: 'x', tag: 'y' }

/** Every call with all of its options, and the operation that it sends first. */
const calls: Record<keyof PlantStore, [OperationName, (store: PlantStore) => Promise<unknown>]> = {
  create: ['createPlant', (store) => store.create(plant, { idempotencyKey: 'k' })],
  get: ['getPlant', (store) => store.get(1n)],
  replace: [
    'replacePlant',
    (store) => store.replace(1n, plant, { ifMatch: '"1"', ifNoneMatch: '"2"' }),
  ],
  update: ['getPlant', (store) => store.update(1n, (found) => found)],
  delete: ['deletePlant', (store) => store.delete(1n, { ifMatch: '"1"' })],
  list: [
    'listPlants',
    (store) => store.list({ tag: 't', name: 'n', order: 'desc', after: 1n, pageSize: 2 }).next(),
  ],
  importPlants: [
    'importPlantsAsNdjson',
    (store) => store.importPlants([plant], { onConflict: 'skip' }),
  ],
  events: ['listEvents', (store) => store.events({ after: 'p' }).next()],
  position: ['listEvents', (store) => store.position()],
  mirror: ['listEvents', (store) => store.mirror({ after: 'p' }).next()],
}

for (const [name, [operation, call]] of Object.entries(calls)) {
  it(`the request of ${name} is one that the contract has`, async () => {
    const { method, path, ...rest } = operations[operation]
    const sent: { url: URL; init: RequestInit }[] = []
    const fetch = async (input: unknown, init: RequestInit = {}) => {
      sent.push({ url: new URL(String(input)), init })
      return new Response('{"error":40101,"message":"x"}', { status: 401 })
    }
    const store = new PlantStore({ url: 'http://h', token: 'x', fetch })
    await assert.rejects(call(store), { error: 40101 })
    const [{ url, init } = assert.fail()] = sent
    assert.equal(init.method, method)
    assert.equal(url.pathname, path.replace('{id}', '1'))
    // With its cache, a browser may send a write twice.
    assert.equal(init.cache, method === 'GET' ? undefined : 'no-store')
    const headers = new Headers(init.headers)
    assert.equal(headers.get('Content-Type'), 'body' in rest ? rest.body.mediaType : null)
    const known = { query: [] as string[], header: ['Authorization', 'Accept', 'Content-Type'] }
    for (const parameter of rest.parameters) {
      const kept: { in: 'query' | 'header'; name?: string } = parameters[parameter]
      known[kept.in].push(kept.name ?? parameter)
    }
    for (const each of known.header) headers.delete(each)
    for (const each of known.query) url.searchParams.delete(each)
    assert.deepEqual([[...headers], url.search], [[], ''])
  })
}
