import assert from 'node:assert/strict'
import { createServer } from 'node:net'
import { describe, it } from 'node:test'
import { PlantStore, type PlantStoreError, type PlantStoreOptions } from '../../client/index.ts'
import { listen } from '../support/listen.ts'
import { operatorToken, startService } from '../support/service.ts'
import { type Moment, openDroppingProxy } from './dropping-proxy.ts'
import { answer, openScriptedServer } from './scripted-server.ts'

const moments: Moment[] = ['before sending', 'after forwarding', 'before the answer']

const service = await startService('sqlite::memory:')
const direct = new PlantStore({ url: service.url, token: operatorToken })

describe('a client behind a network that loses connections', () => {
  let lastId = 0n
  const newId = () => ++lastId

  async function openStore(
    choose: (request: string) => Moment | undefined,
    options: Partial<PlantStoreOptions> = {},
  ) {
    const proxy = await openDroppingProxy(service.url, choose)
    const store = new PlantStore({ url: proxy.url, token: operatorToken, ...options })
    return { store, requests: proxy.requests }
  }

  /** Drops the first request with this method. */
  function once(method: string, moment: Moment): (request: string) => Moment | undefined {
    let isDone = false
    return (request) => {
      if (isDone || !request.startsWith(`${method} `)) return undefined
      isDone = true
      return moment
    }
  }

  for (const moment of moments) {
    it(`creates once although a request is lost ${moment}`, async () => {
      const plant = { id: newId(), name: 'x' }
      const { store, requests } = await openStore(once('POST', moment))
      assert.deepEqual(await store.create(plant), await direct.get(plant.id))
      assert.equal(requests.length, 2)
    })

    it(`updates once although a request is lost ${moment}`, async () => {
      const id = newId()
      await direct.create({ id, name: '1' })
      const { store, requests } = await openStore(once('PUT', moment))
      const updated = await store.update(id, ({ name }) => ({ name: `${name}0` }))
      assert.deepEqual(updated, await direct.get(id))
      assert.equal(updated?.name, '10')
      const puts = requests.filter((line) => line.startsWith('PUT')).length
      if (moment === 'before the answer') assert.equal(puts, 1)
    })

    it(`replaces a state once, and creates once, although a request is lost ${moment}`, async () => {
      const id = newId()
      const plant = { name: 'new', tag: 't' }
      const { store } = await openStore(once('PUT', moment))
      const created = await store.replace(id, plant, { ifNoneMatch: '*' })
      assert.deepEqual(created, { ...(await direct.get(id)), created: true })
      const other = await openStore(once('PUT', moment))
      const replaced = await other.store.replace(id, { name: 'x' }, { ifMatch: created.etag })
      assert.deepEqual(replaced, { ...(await direct.get(id)), created: false })
    })

    it(`deletes although a request is lost ${moment}`, async () => {
      const id = newId()
      const { etag } = await direct.create({ id, name: 'x' })
      const { store } = await openStore(once('DELETE', moment))
      assert.equal(await store.delete(id, { ifMatch: etag }), true)
      assert.equal(await direct.get(id), undefined)
      const again = await openStore(once('DELETE', moment))
      assert.equal(await again.store.delete(id), true, 'nobody knows who deleted it')
    })
  }

  it('replaces the same content again if its own attempt did not arrive', async () => {
    const id = newId()
    const { etag: ifMatch } = await direct.create({ id, name: 'same' })
    const { store } = await openStore(once('PUT', 'before sending'))
    const replaced = await store.replace(id, { name: 'same' }, { ifMatch })
    assert.notEqual(replaced.etag, ifMatch)
  })

  it('does not apply an update again after somebody else has changed the plant', async () => {
    const id = newId()
    await direct.create({ id, name: '0' })
    let puts = 0
    const { store } = await openStore(once('PUT', 'before the answer'), {
      async fetch(input, init) {
        if (init?.method === 'PUT') puts++
        // This is the look at the plant after the lost answer.
        else if (puts > 0) await direct.replace(id, { name: 'other' })
        return fetch(input, init)
      },
    })
    let calls = 0
    const update = store.update(id, ({ name }) => {
      calls++
      return { name: `${name}+1` }
    })
    await assert.rejects(update, {
      name: 'PlantStoreError',
      error: undefined,
      message: /nobody knows whether this write was applied/,
    })
    assert.deepEqual({ calls, puts }, { calls: 1, puts: 1 })
    assert.equal((await direct.get(id))?.name, 'other')
  })

  it('takes a refusal for no lost answer: it does not claim a delete by somebody else', async () => {
    const refusal = { error: 50300, message: 'Too many changes wait.' }
    const absence = { error: 40401, message: 'No plant has this id.' }
    const server = await openScriptedServer(answer(503, refusal), answer(404, absence))
    const store = new PlantStore({ url: server.url, token: operatorToken })
    assert.equal(await store.delete(1n), false)
    const methods = server.requests.map(({ method }) => method)
    assert.deepEqual(methods, ['DELETE', 'DELETE'])
  })

  it('deletes although a lost request may arrive only after the look at the plant', async () => {
    const server = await openScriptedServer(
      (request) => request.socket.destroy(),
      answer(200, { id: 1, name: 'x' }, { ETag: '"1"' }),
      answer(404, { error: 40401, message: 'No plant has this id.' }),
    )
    const store = new PlantStore({ url: server.url, token: operatorToken })
    assert.equal(await store.delete(1n), true)
    const methods = server.requests.map(({ method }) => method)
    assert.deepEqual(methods, ['DELETE', 'GET', 'DELETE'])
  })

  it('looks at the plant after a 503 of a proxy, which may have passed the write on', async () => {
    const id = newId()
    await direct.create({ id, name: '1' })
    let isPassedOn = false
    const store = new PlantStore({
      url: service.url,
      token: operatorToken,
      async fetch(input, init) {
        const response = await fetch(input, init)
        if (init?.method !== 'PUT' || isPassedOn) return response
        isPassedOn = true
        return new Response('upstream connect error or disconnect/reset', { status: 503 })
      },
    })
    const updated = await store.update(id, ({ name }) => ({ name: `${name}0` }))
    assert.equal(updated?.name, '10')
    assert.deepEqual(updated, await direct.get(id))
  })

  it('does not take a state that it must keep for the one that it wrote', async () => {
    const id = newId()
    const { etag: ifNoneMatch } = await direct.create({ id, name: 'same' })
    const { store } = await openStore(once('PUT', 'before sending'))
    const call = store.replace(id, { name: 'same' }, { ifNoneMatch })
    await assert.rejects(call, { error: 41200 })
  })

  const writes: [name: string, send: (store: PlantStore) => Promise<unknown>][] = [
    ['create', (store) => store.create({ id: 1n, name: 'x' })],
    ['replace', (store) => store.replace(1n, { name: 'x' })],
    ['delete', (store) => store.delete(1n)],
    ['importPlants', (store) => store.importPlants([{ id: 1n, name: 'x' }])],
  ]
  const refusals: [status: number, error: number][] = [
    [503, 50300],
    [401, 40102],
    [403, 40300],
    [500, 50000],
    [507, 50700],
  ]
  for (const [name, send] of writes) {
    for (const [status, error] of refusals) {
      it(`does not say that ${name} was refused with ${error} after a lost answer`, async () => {
        const refusal = { error, message: 'A sentence.' }
        const server = await openScriptedServer(
          (request) => request.socket.destroy(),
          answer(status, refusal, { 'Retry-After': '0' }),
        )
        const store = new PlantStore({ url: server.url, token: operatorToken, retries: 2 })
        await assert.rejects(send(store), {
          status: undefined,
          error: undefined,
          message: /was lost/,
        })
        await assert.rejects(store.get(1n), { status, ...refusal })
      })
    }
  }

  it('says that a create was refused after a lost answer if the plant is the reason', async () => {
    const id = newId()
    await direct.create({ id, name: 'other' })
    const { store } = await openStore(once('POST', 'before the answer'))
    await assert.rejects(store.create({ id, name: 'x' }), { error: 40900 })
  })

  it('says why, and tells onRetry of each attempt that is made again', async () => {
    const listener = createServer()
    const url = await listen(listener)
    await new Promise((resolve) => listener.close(resolve))
    const told: string[] = []
    const onRetry = ({ message: words }: PlantStoreError, pauseMs: number) => {
      assert.ok(pauseMs <= 500)
      told.push(words)
    }
    const away = new PlantStore({ url, token: operatorToken, retries: 2, onRetry })
    const message = `The connection to ${url} was lost: connect ECONNREFUSED ${url.slice(7)}.`
    await assert.rejects(away.get(1n), { message })
    await assert.rejects(away.events().next(), { message })
    assert.deepEqual(told, Array(4).fill(message))
  })

  it('says why with the code where several addresses of a host were tried', async () => {
    const tried = Object.assign(new AggregateError([]), { code: 'ECONNREFUSED' })
    const fetch = () => Promise.reject(new TypeError('fetch failed', { cause: tried }))
    const away = new PlantStore({ url: 'http://h', token: operatorToken, retries: 0, fetch })
    await assert.rejects(away.get(1n), {
      message: 'The connection to http://h was lost: ECONNREFUSED.',
    })
  })
})
