import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { type NewPlant, PlantStore, type PlantStoreOptions } from '../../client/index.ts'
import { waitUntil } from '../support/wait.ts'
import { answer, openScriptedServer, type Script } from './scripted-server.ts'

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

const beginBody: Script = (_request, response) =>
  response.writeHead(200, { 'Content-Type': 'application/json', ETag: '"1"' }).write('{"id":1')

/** What a call may wait for: the answers of a service, or a `fetch` that knows no signal. */
const waits: Record<string, { script?: Script; fetch?: PlantStoreOptions['fetch'] }> = {
  'an answer': { script: () => {} },
  'the rest of an answer': { script: beginBody },
  'its next attempt': { script: answer(503, '', { 'Retry-After': '50' }) },
  'its next attempt after a lost connection': { script: (request) => request.socket.destroy() },
  'a stream of events': {
    script: (_request, response) =>
      response.writeHead(200, { 'Content-Type': 'text/event-stream' }).write('id: a\n\n'),
  },
  'a fetch that ignores its signal': { fetch: () => new Promise(() => {}) },
  'a body that ignores its signal': {
    fetch: async () => new Response(new ReadableStream(), { status: 200 }),
  },
  'a stream that ignores its signal': {
    fetch: async () => {
      const headers = { 'Content-Type': 'text/event-stream' }
      return new Response(new ReadableStream(), { headers })
    },
  },
}

function newStop() {
  const controller = new AbortController()
  return { signal: controller.signal, stop: () => controller.abort(reason) }
}

describe('the signal of a call', () => {
  for (const [name, call] of Object.entries(calls)) {
    for (const [what, { script = () => {}, fetch: send }] of Object.entries(waits)) {
      it(`ends ${name} while it waits for ${what}`, async () => {
        const server = await openScriptedServer(script)
        let sent = 0
        const store = new PlantStore({
          url: server.url,
          token,
          fetch(input, init) {
            sent++
            return (send ?? fetch)(input, init)
          },
        })
        const { signal, stop } = newStop()
        const ended = assert.rejects(call(store, signal), reason)
        await waitUntil(() => (send ? sent : server.requests.length) > 0, 'the request was sent')
        stop()
        await ended
        const sentBefore = sent
        await new Promise(setImmediate)
        assert.equal(sent, sentBefore)
      })
    }
  }

  it('ends an update while it waits for the change, and writes nothing', async () => {
    const server = await openScriptedServer(answer(200, { id: 1, name: 'x' }, { ETag: '"1"' }))
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

/** A source of plants that notes how many were taken, and whether it was closed. */
interface Source {
  readonly plants: Iterable<NewPlant> | AsyncIterable<NewPlant>
  taken: number
  closed: number
}

type NewSource = (onTake: (taken: number) => void) => Source

const never = () => new Promise<never>(() => {})

/** An iterator of plants without end. */
function endless(onTake: (taken: number) => void) {
  const source = { taken: 0, closed: 0 }
  const next = () => {
    source.taken++
    onTake(source.taken)
    return { done: false as const, value: { id: BigInt(source.taken), name: 'x'.repeat(1_000) } }
  }
  return { source, next }
}

const sources: Record<string, NewSource> = {
  'a synchronous source'(onTake) {
    const { source, next } = endless(onTake)
    const close = () => {
      source.closed++
      return { done: true as const, value: undefined }
    }
    return Object.assign(source, { plants: { [Symbol.iterator]: () => ({ next, return: close }) } })
  },
  'a generator'(onTake) {
    const { source, next } = endless(onTake)
    function* plants() {
      try {
        for (;;) yield next().value
      } finally {
        source.closed++
      }
    }
    return Object.assign(source, { plants: plants() })
  },
  'an asynchronous generator'(onTake) {
    const { source, next } = endless(onTake)
    async function* plants() {
      try {
        for (;;) yield next().value
      } finally {
        source.closed++
      }
    }
    return Object.assign(source, { plants: plants() })
  },
  'an asynchronous source'(onTake) {
    const { source, next } = endless(onTake)
    const close = async () => {
      source.closed++
      return { done: true as const, value: undefined }
    }
    const iterator = { next: async () => next(), return: close }
    return Object.assign(source, { plants: { [Symbol.asyncIterator]: () => iterator } })
  },
  'a source that waits, and cannot be closed in time'(onTake) {
    const { source, next } = endless(onTake)
    const close = () => {
      source.closed++
      return never()
    }
    const iterator = {
      async next() {
        const result = next()
        return source.taken < 2_500 ? result : never()
      },
      return: close,
    }
    return Object.assign(source, { plants: { [Symbol.asyncIterator]: () => iterator } })
  },
  'a source that fails to close'(onTake) {
    const { source, next } = endless(onTake)
    const iterator = {
      next: async () => next(),
      return: async () => {
        source.closed++
        throw new Error('cannot close')
      },
    }
    return Object.assign(source, { plants: { [Symbol.asyncIterator]: () => iterator } })
  },
  'a source without a way to close it'(onTake) {
    const { source, next } = endless(onTake)
    source.closed = 1
    return Object.assign(source, {
      plants: { [Symbol.asyncIterator]: () => ({ next: async () => next() }) },
    })
  },
}

describe('the signal of an import', () => {
  const report = answer(200, {
    lines: 1,
    stored: 1,
    alreadyThere: 0,
    replaced: 0,
    skipped: 0,
    conflicts: 0,
    invalid: 0,
    refused: [],
    refusedInAll: 0,
  })

  for (const [title, newSource] of Object.entries(sources)) {
    it(`takes no more from ${title}, and closes it once`, async () => {
      const server = await openScriptedServer(report)
      const store = new PlantStore({ url: server.url, token })
      const { signal, stop } = newStop()
      const source = newSource((taken) => {
        if (taken === 2_500) stop()
      })
      await assert.rejects(store.importPlants(source.plants, { signal }), reason)
      assert.equal(source.taken, 2_500)
      assert.equal(source.closed, 1)
      assert.equal(server.requests.length, 2)
    })

    it(`that aborts while a part is sent closes ${title}`, async () => {
      const { signal, stop } = newStop()
      const server = await openScriptedServer(stop)
      const store = new PlantStore({ url: server.url, token })
      const source = newSource(() => {})
      await assert.rejects(store.importPlants(source.plants, { signal }), reason)
      assert.equal(source.closed, 1)
      assert.ok(source.taken < 2_499, `${source.taken} were taken`)
    })
  }

  it('ends it while it waits for its source to close after a failure', async () => {
    const server = await openScriptedServer(answer(401, { error: 40101, message: 'no' }))
    const store = new PlantStore({ url: server.url, token })
    const { signal, stop } = newStop()
    const { next } = endless(() => {})
    const close = () => {
      setImmediate(stop)
      return never()
    }
    const plants = { [Symbol.asyncIterator]: () => ({ next: async () => next(), return: close }) }
    await assert.rejects(store.importPlants(plants, { signal }), { error: 40101 })
  })

  it('leaves no listener behind', async () => {
    const server = await openScriptedServer(report)
    const store = new PlantStore({ url: server.url, token })
    const { signal } = newStop()
    let listeners = 0
    const { addEventListener, removeEventListener } = signal
    signal.addEventListener = (...all: Parameters<AbortSignal['addEventListener']>) => {
      listeners++
      addEventListener.apply(signal, all)
    }
    signal.removeEventListener = (...all: Parameters<AbortSignal['removeEventListener']>) => {
      listeners--
      removeEventListener.apply(signal, all)
    }
    await store.importPlants([plant], { signal })
    async function* failing() {
      yield plant
      throw reason
    }
    await assert.rejects(store.importPlants(failing(), { signal }), reason)
    await assert.rejects(store.importPlants([{ id: 1 as never, name: 'x' }], { signal }), TypeError)
    assert.equal(listeners, 0)
  })
})
