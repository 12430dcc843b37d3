import assert from 'node:assert/strict'
import { before, describe, it } from 'node:test'
import { inspect } from 'node:util'
import { type ListOptions, PlantStore, PlantStoreError } from '../../client/index.ts'
import { limits } from '../../src/contract/limits.ts'
import { operatorToken, startService, type TestService } from '../support/service.ts'

const largest = 2n ** 63n - 1n
const smallest = -(2n ** 63n)

describe('a list of large plants', () => {
  it('comes page by page, with every plant once', async () => {
    const { url, store: opened } = await startService('sqlite::memory:')
    const store = new PlantStore({ url, token: operatorToken })
    // Earlier releases stored plants of up to 1 MiB.
    const name = 'x'.repeat(700_000)
    const ids = [1n, 2n, 3n, 4n, 5n]
    for (const id of ids) await opened.createPlant({ id, name })
    const listed = await Array.fromAsync(store.list())
    assert.deepEqual(
      listed.map(({ id }) => id),
      ids,
    )
  })
})

describe('a search by name', () => {
  it('goes on over pages without a find, in both orders', async () => {
    const { url, store: opened } = await startService('sqlite::memory:')
    const store = new PlantStore({ url, token: operatorToken })
    const count = 2 * limits.examinedPlants + 2
    const plants = Array.from({ length: count }, (_, id) => ({ id: BigInt(id), name: 'Fern' }))
    const [first, last] = [0n, BigInt(count - 1)]
    await opened.importPlants(plants, 'keep')
    for (const id of [first, last]) await store.replace(id, { name: 'Ölbaum' })
    const find = async (options: ListOptions) =>
      (await Array.fromAsync(store.list({ name: 'öLB', ...options }))).map(({ id }) => id)
    assert.deepEqual(await find({}), [first, last])
    assert.deepEqual(await find({ order: 'desc' }), [last, first])
    assert.deepEqual(await find({ after: first }), [last])
    assert.deepEqual(await find({ order: 'desc', after: last, pageSize: 1 }), [first])
    assert.deepEqual(await find({ name: 'öLBä' }), [])
    assert.equal((await find({ name: '' })).length, count)
  })
})

describe('a client of a running service', () => {
  let service: TestService
  let store: PlantStore
  let lastId = 0n
  const newId = () => ++lastId

  before(async () => {
    service = await startService('sqlite::memory:')
    store = new PlantStore({ url: service.url, token: operatorToken })
  })

  for (const id of [0n, -1n, 2n ** 53n + 1n, -(2n ** 53n) - 1n, largest, smallest]) {
    it(`creates, reads, lists, replaces and deletes plant ${id}, exact to the last digit`, async () => {
      const created = await store.create({ id, name: 'Ficus', tag: 'indoor' })
      assert.deepEqual(created, { id, name: 'Ficus', tag: 'indoor', etag: created.etag })
      assert.deepEqual(await store.get(id), created)
      const [first] = await Array.fromAsync(
        store.list({ after: id === smallest ? undefined : id - 1n, pageSize: 1 }),
      )
      assert.deepEqual(first, { id, name: 'Ficus', tag: 'indoor' })
      const replaced = await store.replace(id, { name: 'Monstera' }, { ifMatch: created.etag })
      assert.deepEqual(replaced, { id, name: 'Monstera', etag: replaced.etag, created: false })
      assert.notEqual(replaced.etag, created.etag)
      assert.equal(await store.delete(id), true)
      assert.equal(await store.delete(id), false)
      assert.equal(await store.get(id), undefined)
    })
  }

  it('sends writes past the cache of a browser, which may send them twice', async () => {
    const seen: string[] = []
    const watching: typeof fetch = (url, init) => {
      seen.push(`${init?.method} ${init?.cache}`)
      return fetch(url, init)
    }
    const watched = new PlantStore({ url: service.url, token: operatorToken, fetch: watching })
    const id = newId()
    await watched.create({ id, name: 'Ficus' })
    await watched.replace(id, { name: 'Monstera' })
    await watched.get(id)
    await watched.delete(id)
    await watched.importPlants([{ id, name: 'Ficus' }])
    const past = (method: string) => `${method} no-store`
    const expected = [past('POST'), past('PUT'), 'GET undefined', past('DELETE'), past('POST')]
    assert.deepEqual(seen, expected)
  })

  const texts = [
    '',
    '"id":1,',
    '{"id":9007199254740993}',
    '\\"',
    '\u{1f33f}',
    'line\u2028end',
    '#5',
  ]
  for (const name of texts) {
    it(`keeps the name ${JSON.stringify(name)} beside a large id`, async () => {
      const plant = { id: largest - newId(), name, tag: name }
      const { etag } = await store.create(plant)
      assert.deepEqual(await store.get(plant.id), { ...plant, etag })
      assert.deepEqual(await Array.fromAsync(store.list({ after: plant.id - 1n, tag: name })), [
        plant,
      ])
      await store.delete(plant.id)
    })
  }

  it('leaves an absent tag absent, and sends no other member', async () => {
    const id = newId()
    const { etag } = await store.create({ id, name: 'x', tag: undefined })
    assert.deepEqual(await store.get(id), { id, name: 'x', etag })
    const state = await store.update(id, (plant) => ({ ...plant, tag: 'new' }))
    assert.deepEqual(state, { id, name: 'x', tag: 'new', etag: state?.etag })
  })

  it('creates with a replace, and only where nothing is', async () => {
    const id = newId()
    const first = await store.replace(id, { name: 'first' }, { ifNoneMatch: '*' })
    assert.equal(first.created, true)
    await assert.rejects(store.replace(id, { name: 'second' }, { ifNoneMatch: '*' }), {
      name: 'PlantStoreError',
      status: 412,
      error: 41200,
    })
    assert.equal((await store.get(id))?.name, 'first')
  })

  it('refuses to replace and to delete another state than that of ifMatch', async () => {
    const id = newId()
    const old = await store.create({ id, name: 'old' })
    await store.replace(id, { name: 'new' })
    const conditions = { ifMatch: old.etag }
    await assert.rejects(store.replace(id, { name: 'x' }, conditions), { error: 41200 })
    await assert.rejects(store.delete(id, conditions), { error: 41200 })
    assert.equal((await store.get(id))?.name, 'new')
  })

  it('updates a plant behind a proxy that compresses, and therefore weakens entity tags', async () => {
    const id = 4_711n
    const { etag } = await store.create({ id, name: '1' })
    let requests = 0
    const behind = new PlantStore({
      url: service.url,
      token: operatorToken,
      async fetch(input, init) {
        assert.ok(++requests <= 2, 'it does not start over')
        const response = await fetch(input, init)
        const headers = new Headers(response.headers)
        headers.set('ETag', `W/${headers.get('ETag')}`)
        return new Response(await response.text(), { status: response.status, headers })
      },
      retries: 0,
    })
    const updated = await behind.update(id, ({ name, etag: read }) => {
      assert.equal(read, etag)
      return { name: `${name}0` }
    })
    assert.deepEqual(updated, await store.get(id))
  })

  it('updates nothing where there is no plant', async () => {
    let calls = 0
    const change = () => ({ name: `${++calls}` })
    assert.equal(await store.update(newId(), change), undefined)
    assert.equal(calls, 0)
  })

  it('leaves a plant that the change of an update gives nothing for', async () => {
    const id = newId()
    const created = await store.create({ id, name: 'x' })
    assert.deepEqual(await store.update(id, () => undefined), created)
    assert.deepEqual(await store.update(id, async () => undefined), created)
    assert.deepEqual(await store.get(id), created)
  })

  it('throws what the change of an update throws, and writes nothing', async () => {
    const id = newId()
    const { etag } = await store.create({ id, name: 'x' })
    const mistake = new Error('mine')
    const update = store.update(id, () => Promise.reject(mistake))
    await assert.rejects(update, (error) => error === mistake)
    assert.equal((await store.get(id))?.etag, etag)
  })

  it('keeps every change of 20 updaters of one plant', async () => {
    const id = newId()
    await store.create({ id, name: '0' })
    const changes = process.env.FAULTS === 'long' ? 50 : 2
    const updaters = Array.from({ length: 20 }, async () => {
      for (let change = 0; change < changes; change++) {
        await store.update(id, ({ name }) => ({ name: `${Number(name) + 1}` }))
      }
    })
    await Promise.all(updaters)
    assert.equal((await store.get(id))?.name, `${20 * changes}`)
  })

  it('throws the number, the sentence and the request id of a failure', async () => {
    const plant = { id: newId(), name: 'x' }
    await store.create(plant)
    const error = await store.create(plant).catch((caught: unknown) => caught)
    assert.ok(error instanceof PlantStoreError)
    const { status, error: number, message, requestId } = error
    assert.deepEqual({ status, number }, { status: 409, number: 40900 })
    assert.equal(message, `A plant with the id ${plant.id} exists. It was not changed.`)
    assert.match(requestId ?? '', /^[\w-]+$/)
  })

  it('repeats a create by its key, and refuses the key for another plant', async () => {
    const plant = { id: newId(), name: 'x' }
    const options = { idempotencyKey: `key-${plant.id}` }
    const first = await store.create(plant, options)
    assert.deepEqual(await store.create(plant, options), first)
    await assert.rejects(store.create({ ...plant, name: 'y' }, options), { error: 42200 })
  })

  it('leaves it to the service what a plant is', async () => {
    const id = newId()
    await assert.rejects(store.create({ id: 2n ** 63n, name: 'x' }), { error: 40003 })
    await assert.rejects(store.create({ id, name: '\ud800' }), { error: 40003 })
    await assert.rejects(store.create({ id, name: 'a\0b' }), { error: 40003 })
    await assert.rejects(store.create({ id } as never), { error: 40003 })
    await assert.rejects(store.replace(id, { name: 'x', tag: null as never }), { error: 40003 })
    await assert.rejects(store.get(2n ** 63n), { error: 40004 })
    await assert.rejects(store.list({ pageSize: 1001 }).next(), { error: 40005 })
  })

  it('refuses ids that are no bigints', async () => {
    const wrong = {
      name: 'TypeError',
      message: 'id must be a bigint, such as 1n, but is a number.',
    }
    await assert.rejects(store.get(1 as never), wrong)
    await assert.rejects(store.create({ id: 1 as never, name: 'x' }), wrong)
    await assert.rejects(store.delete(1 as never), wrong)
  })

  it('lists all pages in order, and those of a tag', async () => {
    const tag = 'a tag & ä+b'
    const plants = Array.from({ length: 25 }, (_, index) => ({
      id: 2n ** 60n + BigInt(index),
      name: `${index}`,
      ...(index % 2 === 0 && { tag }),
    }))
    await Promise.all(plants.map((plant) => store.create(plant)))
    const after = 2n ** 60n - 1n
    assert.deepEqual(await Array.fromAsync(store.list({ after, pageSize: 4 })), plants)
    const tagged = plants.filter((plant) => plant.tag !== undefined)
    assert.deepEqual(await Array.fromAsync(store.list({ tag, pageSize: 4 })), tagged)
    assert.deepEqual(await Array.fromAsync(store.list({ after: largest })), [])
  })

  it('answers calls of next that do not wait for each other', async () => {
    const id = 2n ** 61n
    for (const [index, name] of ['a', 'b', 'c'].entries()) {
      await store.replace(id + BigInt(index), { name })
    }
    for (const pageSize of [1, 2]) {
      const plants = store.list({ after: id - 1n, pageSize })
      const results = await Promise.all(Array.from({ length: 5 }, () => plants.next()))
      assert.deepEqual(
        results.map(({ done, value }) => (done ? 'done' : value.name)),
        ['a', 'b', 'c', 'done', 'done'],
      )
    }
  })

  it('stops a list with break, and asks for no further page', async () => {
    for await (const plant of store.list({ pageSize: 1 })) {
      assert.ok(plant.id)
      break
    }
    const plants = store.list({ pageSize: 1 })
    await plants.next()
    await plants.return?.()
    assert.deepEqual(await plants.next(), { done: true, value: undefined })
  })

  it('shows its token neither in the log of a program nor in an error', async () => {
    assert.doesNotMatch(inspect(store, { depth: 9, showHidden: true }), new RegExp(operatorToken))
    const stranger = new PlantStore({ url: service.url, token: 'a-token-that-nobody-knows' })
    const error = await stranger.get(1n).catch((caught: unknown) => caught)
    assert.ok(error instanceof PlantStoreError)
    assert.equal(error.error, 40101)
    assert.doesNotMatch(inspect(error, { depth: 9, showHidden: true }), /a-token-that-nobody-knows/)
  })
})

describe('the options of a client', () => {
  const right = { url: 'http://127.0.0.1:3000', token: 'x' }
  const wrong: Record<string, unknown[]> = {
    url: [
      undefined,
      3000,
      '',
      '/plants',
      '127.0.0.1:3000',
      'ftp://127.0.0.1',
      'http://user:secret@127.0.0.1',
      'http://127.0.0.1/?a=b',
      'http://127.0.0.1/#a',
    ],
    token: [undefined, 7, '', 'secret token', 'secret\n'],
    fetch: ['secret'],
    onRetry: ['secret'],
    timeoutMs: [0, '1', 2 ** 31],
    retries: [-1, 0.5, Number.POSITIVE_INFINITY],
  }
  for (const [name, values] of Object.entries(wrong)) {
    for (const value of values) {
      const options = { [name]: value }
      it(`refuses ${inspect(options)} at once, with a sentence that names ${name}`, () => {
        assert.throws(
          () => new PlantStore({ ...right, ...options } as never),
          (error) =>
            error instanceof TypeError &&
            new RegExp(`^${name} must be .+\\.$`).test(error.message) &&
            !error.message.includes('secret'),
        )
      })
    }
  }

  it('refuses missing options with a sentence', () => {
    assert.throws(() => new (PlantStore as unknown as new () => object)(), TypeError)
  })

  it('accepts an address with a path, with or without a slash at its end, and a URL', async () => {
    const asked: string[] = []
    const fetch = async (input: unknown) => {
      asked.push(String(input))
      return new Response('{"error":40401,"message":"x"}', { status: 404 })
    }
    const same = ['http://h/api', 'http://h/api/', 'http://h/api/#', 'http://h/api?']
    for (const url of [...same, new URL('http://h/api//')]) {
      await new PlantStore({ url, token: 'x', fetch }).get(1n)
    }
    assert.deepEqual(asked, Array(5).fill('http://h/api/plants/1'))
  })
})
