import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { inspect } from 'node:util'
import { PlantStore, PlantStoreError } from '../../client/index.ts'
import { operatorToken, startService } from '../support/service.ts'

const largest = 2n ** 63n - 1n
const smallest = -(2n ** 63n)

const service = await startService('sqlite::memory:')
const store = new PlantStore({ url: service.url, token: operatorToken })

describe('a client of a running service', () => {
  let lastId = 0n
  const newId = () => ++lastId

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

  it('writes only where the condition of the caller holds', async () => {
    const id = newId()
    const { etag, created } = await store.replace(id, { name: 'old' }, { ifNoneMatch: '*' })
    assert.equal(created, true)
    const refusal = { name: 'PlantStoreError', status: 412, error: 41200 }
    await assert.rejects(store.replace(id, { name: 'x' }, { ifNoneMatch: '*' }), refusal)
    await store.replace(id, { name: 'new' }, { ifMatch: etag })
    await assert.rejects(store.replace(id, { name: 'x' }, { ifMatch: etag }), refusal)
    await assert.rejects(store.delete(id, { ifMatch: etag }), refusal)
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

  it('writes nothing where an update has no plant, no change or a mistake', async () => {
    const id = newId()
    assert.equal(await store.update(id, () => assert.fail('there is no plant')), undefined)
    const created = await store.create({ id, name: 'x' })
    for (const change of [() => undefined, async () => undefined]) {
      assert.deepEqual(await store.update(id, change), created)
    }
    const mistake = new Error('mine')
    const update = store.update(id, () => Promise.reject(mistake))
    await assert.rejects(update, (error) => error === mistake)
    assert.deepEqual(await store.get(id), created)
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
  const withParts = ['http://a:secret@127.0.0.1', 'http://127.0.0.1/?a', 'http://127.0.0.1/#a']
  const wrong: Record<string, unknown[]> = {
    url: [undefined, 3000, '', '/plants', '127.0.0.1:3000', 'ftp://127.0.0.1', ...withParts],
    token: [undefined, 7, '', 'secret token', 'secret\n'],
    fetch: ['secret'],
    onRetry: ['secret'],
    timeoutMs: [0, '1', 2 ** 31],
    retries: [-1, 0.5, Number.POSITIVE_INFINITY],
  }
  for (const [name, values] of Object.entries(wrong)) {
    it(`are refused at once, with a sentence that names ${name}`, () => {
      for (const value of values) {
        assert.throws(
          () => new PlantStore({ ...right, [name]: value } as never),
          (error) =>
            error instanceof TypeError &&
            new RegExp(`^${name} must be .+\\.$`).test(error.message) &&
            !error.message.includes('secret'),
          inspect(value),
        )
      }
    })
  }

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
