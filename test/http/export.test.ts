import assert from 'node:assert/strict'
import { once } from 'node:events'
import type { Socket } from 'node:net'
import { before, describe, it } from 'node:test'
import { maxSnapshotsOfToken } from '../../src/store/snapshots.ts'
import type { Snapshot, Store } from '../../src/store/store.ts'
import { engines, sqlite } from '../support/engines.ts'
import {
  authorized,
  startService,
  type TestService,
  type TestServiceOptions,
} from '../support/service.ts'
import { openSocket, toBytes } from '../support/wire.ts'
import { get } from './scenarios/scenario.ts'

for (const engine of engines) {
  describe(`an export as a file, on ${engine.name}`, () => {
    let service: TestService
    const plants = [
      '{"id":-9223372036854775808,"name":"\\"a\\",\\nb"}',
      '{"id":1,"name":"Monstera","tag":"indoor"}',
      '{"id":2,"name":"","tag":""}',
      '{"id":9223372036854775807,"name":"🌵"}',
    ]
    // An absent tag is not an empty one.
    const records = [
      '-9223372036854775808,"""a"",\nb",',
      '1,Monstera,indoor',
      '2,"",""',
      '9223372036854775807,🌵,',
    ]
    before(async () => {
      service = await startService(await engine.newUrl())
      for (const plant of plants) await service.create(plant)
    })

    const cases: [path: string, body: string][] = [
      ['/plants.ndjson', `${plants.join('\n')}\n`],
      ['/plants.ndjson?tag=indoor', `${plants[1]}\n`],
      ['/plants.ndjson?after=-5&limit=2', `${plants[1]}\n${plants[2]}\n`],
      ['/plants.csv', `${['id,name,tag', ...records].join('\n')}\n`],
      [
        '/plants.csv?delimiter=tab&spreadsheet=true&tag=indoor',
        '\ufeffid\tname\ttag\n1\tMonstera\tindoor\n',
      ],
    ]
    for (const [path, body] of cases) {
      it(`is what was asked for, exact to the last digit, gzipped or not: ${path}`, async () => {
        for (const encoding of ['identity', 'br, gzip']) {
          const headers = { ...authorized, 'Accept-Encoding': encoding }
          const answer = await fetch(service.url + path, { headers })
          assert.equal(Buffer.from(await answer.arrayBuffer()).toString(), body)
        }
      })
    }
  })

  describe(`an export on ${engine.name}`, () => {
    let service: TestService
    let store: Store
    let url: string
    const count = 30
    const name = 'x'.repeat(500_000)
    let headers: { Authorization: string }
    before(async () => {
      url = await engine.newUrl()
      store = await engine.open(url)
      for (let id = 0; id < count; id++) await store.createPlant({ id: BigInt(id), name })
      service = await startService('sqlite::memory:', { store })
      headers = (await service.issue()).headers
    })

    it('is refused when its token reads two already, while others are served', async () => {
      for (let open = 0; open < maxSnapshotsOfToken; open++) await holdExport(service.url, headers)
      const refused = await fetch(`${service.url}/plants.csv`, { headers })
      assert.equal(refused.status, 503)
      assert.equal(refused.headers.get('retry-after'), '1')
      assert.match(await refused.text(), /50300.*This token/)
      const other = await fetch(`${service.url}/plants.ndjson`, {
        headers: { ...authorized, 'Accept-Encoding': 'identity' },
      })
      assert.equal(other.status, 200)
      await other.text()
    })

    it('is cut when it takes too long, and releases its snapshot', async () => {
      const own = await engine.open(url)
      const released = Promise.withResolvers<void>()
      const openSnapshot = async () => {
        const snapshot = await own.openSnapshot()
        return { ...snapshot, close: () => snapshot.close().then(released.resolve) }
      }
      const hasty = await startService(url, {
        store: { ...own, openSnapshot },
        // Nothing else cuts a client that does not read.
        timeouts: { exportMs: 500, stallTimeoutMs: 300_000 },
      })
      const held = await holdExport(hasty.url)
      await released.promise
      held.resume()
      if (!held.closed) await once(held, 'close')
      assert.ok(held.bytesRead < count * name.length, 'the export was sent completely')
    })
  })
}

describe('an export without a first piece', () => {
  it('is answered as any failure, and releases its snapshot', async () => {
    const { service, closed } = await startWith(async function* () {
      yield await Promise.reject(new Error('no page'))
    })
    const { status, headers, body } = await service.call({ path: '/plants.ndjson' })
    await closed
    assert.equal(status, 500)
    assert.equal(JSON.parse(body).error, 50000)
    assert.equal(headers.get('content-type'), 'application/json; charset=utf-8')
    assert.equal(headers.has('vary'), false)
  })

  it('releases its snapshot when its client has left, and logs no error', async () => {
    const begun = Promise.withResolvers<void>()
    const gate = Promise.withResolvers<void>()
    const { service, closed } = await startWith(async function* () {
      begun.resolve()
      await gate.promise
      yield [{ id: 1n, name: 'x', version: 1n }]
    })
    const socket = openSocket(service.url)
    socket.write(toBytes(get('/plants.ndjson')))
    await begun.promise
    socket.destroy()
    await service.call({ path: '/healthz' })
    gate.resolve()
    await closed
    await service.call({ path: '/healthz' })
    assert.deepEqual(service.log, [])
  })
})

/** Begins an export and reads only its beginning: the rest is more than the system buffers. */
function holdExport(url: string, headers = authorized): Promise<Socket> {
  const socket = openSocket(url)
  // A busy machine may have no first piece in time, and answers that as any failure.
  socket.write(toBytes(get('/plants.ndjson', { ...headers, Connection: 'close' })))
  return new Promise((resolve) => {
    socket.once('close', () => resolve(socket))
    socket.once('data', () => {
      socket.pause()
      resolve(socket)
    })
  })
}

/** A service whose snapshots are read by this function, and how to wait until one is closed. */
async function startWith(
  walkPlants: Snapshot['walkPlants'],
  timeouts: TestServiceOptions['timeouts'] = {},
) {
  const store = await sqlite.open(await sqlite.newUrl())
  const closed = Promise.withResolvers<void>()
  const openSnapshot = async () => {
    const snapshot = await store.openSnapshot()
    return { ...snapshot, walkPlants, close: () => snapshot.close().then(closed.resolve) }
  }
  const service = await startService('sqlite::memory:', {
    store: { ...store, openSnapshot },
    timeouts,
  })
  return { service, closed: closed.promise }
}

const largeName = 'x'.repeat(500_000)

async function* walkForever() {
  for (let id = 0n; ; id++) yield [{ id, name: largeName, version: 1n }]
}

async function* walkOnce() {
  yield [{ id: 1n, name: largeName, version: 1n }]
}

/**
 * Begins an export over HTTP/1.0, whose answer has no length and no chunks, and reads its start.
 * Returns what reads the rest, and tells how the connection ended.
 */
async function begin(url: string, accepted = 'identity'): Promise<() => Promise<unknown>> {
  const socket = openSocket(url)
  const request = toBytes(get('/plants.ndjson', { 'Accept-Encoding': accepted }))
  socket.write(request.toString().replace('HTTP/1.1', 'HTTP/1.0'))
  const ended = new Promise((resolve) => {
    socket.once('end', () => resolve('end'))
    socket.once('error', ({ code }: NodeJS.ErrnoException) => resolve(code))
  })
  await once(socket, 'data')
  socket.pause()
  return () => {
    socket.resume()
    return ended
  }
}

describe('an export over HTTP/1.0', () => {
  it('ends with its connection when it is whole', async () => {
    const { service } = await startWith(walkOnce)
    const readToEnd = await begin(service.url)
    assert.equal(await readToEnd(), 'end')
  })

  for (const accepted of ['identity', 'gzip']) {
    it(`ends with a reset when it fails (${accepted}), and looks whole to nobody`, async () => {
      const failing = Promise.withResolvers<void>()
      const { service } = await startWith(async function* () {
        yield* walkOnce()
        await failing.promise
        throw new Error('no page')
      })
      const readToEnd = await begin(service.url, accepted)
      failing.resolve()
      assert.equal(await readToEnd(), 'ECONNRESET')
    })
  }

  it('ends with a reset when its client stops reading', async () => {
    const { service } = await startWith(walkForever, { stallTimeoutMs: 200 })
    const readToEnd = await begin(service.url)
    while ((await service.countConnections()) === 2);
    assert.equal(await readToEnd(), 'ECONNRESET')
  })

  it('ends with a reset when the service does not wait for it any longer', async () => {
    const { service } = await startWith(walkForever, { shutdownMs: 200 })
    const readToEnd = await begin(service.url)
    assert.equal(await service.close(), 1)
    assert.equal(await readToEnd(), 'ECONNRESET')
  })
})
