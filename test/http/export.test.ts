import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { describe, it } from 'node:test'
import { scopes } from '../../src/contract/scopes.ts'
import { maxSnapshots, maxSnapshotsOfToken } from '../../src/store/snapshots.ts'
import type { Snapshot } from '../../src/store/store.ts'
import { issueToken } from '../../src/tokens/issue.ts'
import { type Engine, engines } from '../support/engines.ts'
import { authorized, startService } from '../support/service.ts'
import { toBytes } from '../support/wire.ts'

/** What a client says it takes, and what it gets. */
const preferences: [accept: string, contentType: RegExp][] = [
  ['application/x-ndjson', /^application\/x-ndjson; charset=utf-8$/],
  ['text/csv', /^text\/csv; charset=utf-8; header=present$/],
  ['TEXT/CSV', /^text\/csv/],
  ['text/*', /^text\/csv/],
  ['text/csv;q=0.1, application/x-ndjson;q=0.2', /^application\/x-ndjson/],
  ['text/csv, */*;q=0.1', /^text\/csv/],
  ['application/x-ndjson;q=0.5, application/json', /^application\/json/],
  ['application/x-ndjson, application/json', /^application\/json/],
  ['text/csv;q=0', /^application\/json/],
  ['*/*', /^application\/json/],
  ['text/html, image/*', /^application\/json/],
  ['', /^application\/json/],
  [';;;,,,q=', /^application\/json/],
]

for (const engine of engines) {
  describe(`GET /plants as a file, on ${engine.name}`, async () => {
    const service = await startService(await engine.newUrl())
    const plants = [
      '{"id":-9223372036854775808,"name":"\\"a\\",\\nb"}',
      '{"id":1,"name":"Monstera","tag":"indoor"}',
      '{"id":2,"name":"","tag":""}',
      '{"id":9223372036854775807,"name":"🌵"}',
    ]
    for (const plant of plants) await service.create(plant)

    function get(path: string, headers: Record<string, string> = {}) {
      return fetch(service.url + path, { headers: { ...authorized, ...headers } })
    }

    it('is every plant as NDJSON, exact to the last digit', async () => {
      const answer = await get('/plants', { Accept: 'application/x-ndjson' })
      assert.equal(await answer.text(), `${plants.join('\n')}\n`)
      assert.equal(answer.headers.get('vary'), 'Accept, Accept-Encoding')
      assert.equal(answer.headers.get('link'), null)
    })

    it('is every plant as CSV, in which an absent tag is not an empty one', async () => {
      const answer = await get('/plants', { Accept: 'text/csv' })
      const expected = `id,name,tag\n-9223372036854775808,"""a"",\nb",\n1,Monstera,indoor\n2,"",""\n9223372036854775807,🌵,\n`
      assert.equal(await answer.text(), expected)
    })

    it('takes the parameters of a list', async () => {
      const accept = { Accept: 'application/x-ndjson' }
      const tagged = await get('/plants?tag=indoor', accept)
      assert.equal(await tagged.text(), `${plants[1]}\n`)
      const two = await get('/plants?after=-5&limit=2', accept)
      assert.equal(await two.text(), `${plants[1]}\n${plants[2]}\n`)
      assert.equal((await get('/plants?limit=0', accept)).status, 400)
    })

    it('is gzipped for who takes that, and for nobody else', async () => {
      const raw = await service.call({
        path: '/plants',
        headers: { Accept: 'text/csv', 'Accept-Encoding': 'gzip;q=0' },
      })
      assert.equal(raw.headers.get('content-encoding'), undefined)
      const accept = { Accept: 'application/x-ndjson', 'Accept-Encoding': 'br, gzip' }
      const zipped = await get('/plants', accept)
      assert.equal(zipped.headers.get('content-encoding'), 'gzip')
      assert.equal(await zipped.text(), `${plants.join('\n')}\n`)
    })

    for (const [accept, contentType] of preferences) {
      it(`is ${contentType.source} for "${accept}"`, async () => {
        const answer = await get('/plants', { Accept: accept })
        assert.match(answer.headers.get('content-type') ?? '', contentType)
        await answer.text()
      })
    }

    it('answers HEAD without a body, and lets go of the store', async () => {
      for (let count = 0; count < 2 * maxSnapshots; count++) {
        const answer = await fetch(`${service.url}/plants`, {
          method: 'HEAD',
          headers: { ...authorized, Accept: 'text/csv' },
        })
        assert.equal(answer.status, 200)
        assert.match(answer.headers.get('content-type') ?? '', /^text\/csv/)
      }
    })

    it('needs the scope to read', async () => {
      const answer = await fetch(`${service.url}/plants`, { headers: { Accept: 'text/csv' } })
      assert.equal(answer.status, 401)
    })
  })

  describe(`an export on ${engine.name}`, async () => {
    const url = await engine.newUrl()
    const store = await engine.open(url)
    const count = 60
    const name = 'x'.repeat(500_000)
    for (let id = 0; id < count; id++) await store.createPlant({ id: BigInt(id), name })
    const service = await startService('sqlite::memory:', { store })
    const request = { name: 'test', scopes, lifetimeMs: undefined }
    const tokens = [await issueToken(store, request), await issueToken(store, request)]
    /** As many tokens as exports may be under way, each as often as it may. */
    const owners = Array.from(
      { length: maxSnapshots },
      (_, index) => tokens[Math.floor(index / maxSnapshotsOfToken)]?.token ?? '',
    )

    it('is refused when its token reads two already, and others are served', async () => {
      const [token = ''] = owners
      const held = [await holdExport(service.url, token), await holdExport(service.url, token)]
      const refused = await fetch(`${service.url}/plants`, {
        headers: { Authorization: `Bearer ${token}`, Accept: 'text/csv' },
      })
      assert.equal(refused.status, 503)
      assert.match(await refused.text(), /50300.*This token/)
      const other = await startExport()
      assert.equal(other.status, 200)
      await other.text()
      for (const socket of held) socket.destroy()
    })

    function startExport(address = service.url) {
      return fetch(`${address}/plants`, {
        headers: { ...authorized, Accept: 'application/x-ndjson', 'Accept-Encoding': 'identity' },
      })
    }

    it('is refused at once when there are many, and lets the next in when one is given up', async () => {
      const held: Socket[] = []
      for (const token of owners) held.push(await holdExport(service.url, token))
      const refused = await startExport()
      assert.equal(refused.status, 503)
      assert.equal(refused.headers.get('retry-after'), '1')
      assert.equal(((await refused.json()) as { error: number }).error, 50300)
      held[0]?.destroy()
      let next = await startExport()
      while (next.status !== 200) {
        await next.text()
        next = await startExport()
      }
      await next.text()
      for (const socket of held) socket.destroy()
    })

    it('is cut when it takes too long, and lets go of the store', async () => {
      // Nothing else cuts a client that does not read.
      const timeouts = { exportMs: 1_500, stallTimeoutMs: 300_000 }
      const hasty = await startService(url, { timeouts })
      const held: Socket[] = []
      for (const token of owners) held.push(await holdExport(hasty.url, token))
      let next = await startExport(hasty.url)
      assert.equal(next.status, 503)
      while (next.status !== 200) {
        await next.text()
        next = await startExport(hasty.url)
      }
      await next.body?.cancel()
      for (const socket of held) {
        let length = 0
        socket.on('data', (chunk: Buffer) => {
          length += chunk.length
        })
        socket.resume()
        await once(socket, 'close')
        assert.ok(length < count * name.length, 'it was sent as a whole')
      }
    })

    it('shows one moment, however slowly it is read', async () => {
      const answer = await startExport()
      for (let id = 0; id < count; id += 2)
        await service.call({ method: 'DELETE', path: `/plants/${id}` })
      await service.create(`{"id":${count},"name":"late"}`)
      const lines = (await answer.text()).trimEnd().split('\n')
      assert.deepEqual(
        lines.map((line) => JSON.parse(line).id),
        Array.from({ length: count }, (_, id) => id),
      )
    })
  })
}

describe('an export that has no first piece', () => {
  /** A service whose snapshots are read by this. */
  async function startWith(walkPlants: Snapshot['walkPlants']) {
    const sqlite = engines[0] as Engine
    const store = await sqlite.open(await sqlite.newUrl())
    const closed = Promise.withResolvers<void>()
    const openSnapshot = async () => ({
      ...(await store.openSnapshot()),
      walkPlants,
      close: async () => closed.resolve(),
    })
    const service = await startService('sqlite::memory:', { store: { ...store, openSnapshot } })
    return { service, closed: closed.promise }
  }

  const request = { path: '/plants', headers: { Accept: 'application/x-ndjson' } }

  it('is answered as any failure, and lets go of the store', async () => {
    const { service, closed } = await startWith(async function* () {
      yield await Promise.reject(new Error('no page'))
    })
    const { status, headers, body } = await service.call(request)
    await closed
    assert.equal(status, 500)
    assert.equal(JSON.parse(body).error, 50000)
    assert.equal(headers.get('content-type'), 'application/json; charset=utf-8')
    assert.equal(headers.has('vary'), false)
  })

  it('lets go of the store when its client has left, which is no fault', async () => {
    const begun = Promise.withResolvers<void>()
    const gate = Promise.withResolvers<void>()
    const { service, closed } = await startWith(async function* () {
      begun.resolve()
      await gate.promise
      yield [{ id: 1n, name: 'x', version: 1n }]
    })
    const socket = connect(Number(new URL(service.url).port), '127.0.0.1')
    socket.write(toBytes({ ...request, headers: { ...authorized, ...request.headers } }))
    await begun.promise
    socket.destroy()
    await service.call({ path: '/healthz' })
    gate.resolve()
    await closed
    await service.call({ path: '/healthz' })
    assert.deepEqual(service.log, [])
  })
})

/** Begins an export and reads no further than its beginning: the rest is more than the system keeps for a reader. */
function holdExport(url: string, token: string): Promise<Socket> {
  const { hostname, port } = new URL(url)
  const socket = connect(Number(port), hostname)
  socket.on('error', () => {})
  socket.write(
    toBytes({
      path: '/plants',
      headers: { Authorization: `Bearer ${token}`, Accept: 'application/x-ndjson' },
    }),
  )
  return new Promise((resolve) => {
    socket.once('data', () => {
      socket.pause()
      resolve(socket)
    })
  })
}
