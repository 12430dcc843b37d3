import assert from 'node:assert/strict'
import { getEventListeners } from 'node:events'
import { describe, it } from 'node:test'
import { emptyReport } from '../../client/import-parts.ts'
import { PlantStore } from '../../client/index.ts'
import { waitUntil } from '../support/wait.ts'
import { answer, countTimers, openScriptedServer, type Script } from './scripted-server.ts'

const token = 'a-token-of-the-tests'
const reason = new Error('stopped')
const plant = { id: 1n, name: 'x' }

type Call = (store: PlantStore, signal: AbortSignal) => Promise<unknown>

/** Every call of the client. */
const calls: Record<Exclude<keyof PlantStore, symbol>, Call> = {
  create: (store, signal) => store.create(plant, { signal }),
  get: (store, signal) => store.get(1n, { signal }),
  replace: (store, signal) => store.replace(1n, plant, { signal }),
  update: (store, signal) => store.update(1n, (found) => found, { signal }),
  delete: (store, signal) => store.delete(1n, { signal }),
  list: (store, signal) => store.list({ signal }).next(),
  importPlants: (store, signal) => store.importPlants([plant], { signal }),
  events: (store, signal) => store.events({ signal }).next(),
  position: (store, signal) => store.position({ signal }),
  mirror: (store, signal) => store.mirror({ signal }).next(),
}

/** What a call may wait for. */
const waits: Record<string, Script> = {
  'an answer': () => {},
  'the rest of an answer': (_request, response) =>
    response.writeHead(200, { 'Content-Type': 'application/json', ETag: '"1"' }).write('{"id":1'),
  'its next attempt': answer(503, '', { 'Retry-After': '50' }),
  'its next attempt after a lost connection': (request) => request.socket.destroy(),
  'a stream of events': (_request, response) =>
    response.writeHead(200, { 'Content-Type': 'text/event-stream' }).write('id: a\n\n'),
}

const found = answer(200, { id: 1, name: 'x' }, { ETag: '"1"' })

/** A client that counts its requests and its pauses before another attempt. */
function newStore(url: string) {
  const counts = { sent: 0, pauses: 0 }
  const counting: typeof fetch = (...request) => {
    counts.sent++
    return fetch(...request)
  }
  const onRetry = () => counts.pauses++
  return { store: new PlantStore({ url, token, fetch: counting, onRetry }), counts }
}

function newStop() {
  const controller = new AbortController()
  return { signal: controller.signal, stop: () => controller.abort(reason) }
}

describe('the signal of a call', () => {
  for (const [name, call] of Object.entries(calls)) {
    for (const [what, script] of Object.entries(waits)) {
      it(`ends ${name}, its timers and its connection while it waits for ${what}`, async () => {
        const server = await openScriptedServer(script)
        const timers = countTimers()
        const { store, counts } = newStore(server.url)
        const { signal, stop } = newStop()
        const ended = assert.rejects(call(store, signal), reason)
        const isWaiting = () =>
          what.startsWith('its next') ? counts.pauses > 0 : server.requests.length > 0
        await waitUntil(isWaiting, 'the call waits')
        stop()
        const { sent } = counts
        await ended
        await new Promise(setImmediate)
        assert.equal(counts.sent, sent)
        assert.equal(countTimers(), timers)
        if (what !== 'its next attempt') {
          await waitUntil(() => server.sockets.size === 0, 'no connection left')
        }
      })
    }

    it(`sends nothing for ${name} if it has aborted before`, async () => {
      const { store, counts } = newStore('http://127.0.0.1:9')
      await assert.rejects(call(store, AbortSignal.abort(reason)), reason)
      assert.equal(counts.sent, 0)
    })
  }

  it('has no listener of a call that has ended', async () => {
    const server = await openScriptedServer((request) => request.socket.destroy(), found)
    const { signal } = newStop()
    await new PlantStore({ url: server.url, token }).get(1n, { signal })
    assert.deepEqual(getEventListeners(signal, 'abort'), [])
  })

  it('ends an update while it waits for the change, and writes nothing', async () => {
    const server = await openScriptedServer(found)
    const store = new PlantStore({ url: server.url, token })
    const { signal, stop } = newStop()
    const change = () => {
      setImmediate(stop)
      return new Promise<never>(() => {})
    }
    await assert.rejects(store.update(1n, change, { signal }), reason)
    assert.equal(server.requests.length, 1)
  })

  it('ends a list and events between two items that have arrived together', async () => {
    const event = (position: string) =>
      `id: ${position}\ndata: {"position":"${position}","type":"plant.created","at":"","plant":{"id":1,"name":"x"}}\n\n`
    const server = await openScriptedServer(
      answer(200, [
        { id: 1, name: 'x' },
        { id: 2, name: 'y' },
      ]),
      answer(200, event('a') + event('b'), { 'Content-Type': 'text/event-stream' }),
    )
    const store = new PlantStore({ url: server.url, token })
    for (const follow of [store.list.bind(store), store.events.bind(store)]) {
      const { signal, stop } = newStop()
      const items = follow({ signal })
      assert.equal((await items.next()).done, false)
      stop()
      await assert.rejects(items.next(), reason)
      assert.equal((await items.next()).done, true)
    }
  })
})

describe('the signal of an import', () => {
  /** Imports from a source without end until the signal aborts. Counts what was taken. */
  async function importFrom(url: string, signal: AbortSignal, onTake: (taken: number) => void) {
    const counts = { taken: 0, closed: 0 }
    async function* source() {
      try {
        for (;;) {
          onTake(++counts.taken)
          yield { id: BigInt(counts.taken), name: 'x'.repeat(1_000) }
        }
      } finally {
        counts.closed++
      }
    }
    const importing = new PlantStore({ url, token }).importPlants(source(), { signal })
    await assert.rejects(importing, reason)
    return counts
  }

  it('takes no more from its source, and closes it once', async () => {
    const server = await openScriptedServer(answer(200, { ...emptyReport, lines: 1, stored: 1 }))
    const { signal, stop } = newStop()
    const counts = await importFrom(server.url, signal, (taken) => taken === 2_500 && stop())
    assert.deepEqual(counts, { taken: 2_500, closed: 1 })
    assert.equal(server.requests.length, 2)
  })

  it('closes its source while a part is sent', async () => {
    const { signal, stop } = newStop()
    const server = await openScriptedServer(stop)
    const { taken, closed } = await importFrom(server.url, signal, () => {})
    assert.equal(closed, 1)
    assert.ok(taken < 2_499, `${taken} were taken`)
  })

  it('ends it while its source waits, and closes the source', async () => {
    const { signal, stop } = newStop()
    let closed = 0
    const next = () => {
      setImmediate(stop)
      return new Promise<never>(() => {})
    }
    const close = () => {
      closed++
      return new Promise<never>(() => {})
    }
    const source = { [Symbol.asyncIterator]: () => ({ next, return: close }) }
    const store = new PlantStore({ url: 'http://127.0.0.1:9', token })
    await assert.rejects(store.importPlants(source, { signal }), reason)
    assert.equal(closed, 1)
  })
})
