import assert from 'node:assert/strict'
import { once } from 'node:events'
import type { Socket } from 'node:net'
import { before, describe, it } from 'node:test'
import { scopes } from '../../src/contract/scopes.ts'
import { maxSnapshots, maxSnapshotsOfToken } from '../../src/store/snapshots.ts'
import type { Snapshot, Store } from '../../src/store/store.ts'
import { issueToken } from '../../src/tokens/issue.ts'
import { engines, sqlite } from '../support/engines.ts'
import { authorized, operatorToken, startService, type TestService } from '../support/service.ts'
import { openSocket, toBytes } from '../support/wire.ts'

for (const engine of engines) {
  describe(`an export as a file, on ${engine.name}`, () => {
    let service: TestService
    const plants = [
      '{"id":-9223372036854775808,"name":"\\"a\\",\\nb"}',
      '{"id":1,"name":"Monstera","tag":"indoor"}',
      '{"id":2,"name":"","tag":""}',
      '{"id":9223372036854775807,"name":"🌵"}',
    ]
    before(async () => {
      service = await startService(await engine.newUrl())
      for (const plant of plants) await service.create(plant)
    })

    function get(path: string, headers: Record<string, string> = {}) {
      return fetch(service.url + path, { headers: { ...authorized, ...headers } })
    }

    it('is every plant as NDJSON, exact to the last digit', async () => {
      const answer = await get('/plants.ndjson')
      assert.equal(await answer.text(), `${plants.join('\n')}\n`)
      assert.equal(answer.headers.get('vary'), 'Accept-Encoding')
      assert.equal(answer.headers.get('link'), null)
    })

    it('is every plant as CSV, in which an absent tag is not an empty one', async () => {
      const answer = await get('/plants.csv')
      const records = [
        'id,name,tag',
        '-9223372036854775808,"""a"",\nb",',
        '1,Monstera,indoor',
        '2,"",""',
        '9223372036854775807,🌵,',
      ]
      assert.equal(await answer.text(), `${records.join('\n')}\n`)
    })

    it('is CSV with the delimiter that is asked for, and for spreadsheets with a mark', async () => {
      const semicolons = await get('/plants.csv?delimiter=semicolon&limit=1')
      assert.equal(await semicolons.text(), 'id;name;tag\n-9223372036854775808;"""a"",\nb";\n')
      const tabs = await get('/plants.csv?delimiter=tab&spreadsheet=true&tag=indoor')
      const bytes = Buffer.from(await tabs.arrayBuffer())
      assert.equal(bytes.toString(), '\ufeffid\tname\ttag\n1\tMonstera\tindoor\n')
      const commas = await get('/plants.csv?delimiter=comma&spreadsheet=false&tag=indoor')
      assert.equal(await commas.text(), 'id,name,tag\n1,Monstera,indoor\n')
    })

    it('takes the parameters of a list', async () => {
      const tagged = await get('/plants.ndjson?tag=indoor')
      assert.equal(await tagged.text(), `${plants[1]}\n`)
      const two = await get('/plants.ndjson?after=-5&limit=2')
      assert.equal(await two.text(), `${plants[1]}\n${plants[2]}\n`)
      assert.equal((await get('/plants.ndjson?limit=0')).status, 400)
    })

    it('shows after the last id of a file what the file lacks', async () => {
      const rest = await get('/plants.ndjson?after=2')
      assert.equal(await rest.text(), `${plants[3]}\n`)
      const nothing = await get('/plants.ndjson?after=9223372036854775807')
      assert.equal(await nothing.text(), '')
    })

    it('is gzipped only for clients that accept gzip and prefer nothing else', async () => {
      const late = `${'x,'.repeat(32)}gzip`
      for (const accepted of ['gzip;q=0', 'identity, gzip;q=0.5', late]) {
        const headers = { 'Accept-Encoding': accepted }
        const raw = await service.call({ path: '/plants.csv', headers })
        assert.equal(raw.headers.get('content-encoding'), undefined, accepted)
      }
      const zipped = await get('/plants.ndjson', { 'Accept-Encoding': 'br, gzip' })
      assert.equal(zipped.headers.get('content-encoding'), 'gzip')
      assert.equal(await zipped.text(), `${plants.join('\n')}\n`)
    })

    it('answers HEAD without a body, and releases its snapshot', async () => {
      for (let count = 0; count < 2 * maxSnapshots; count++) {
        const answer = await fetch(`${service.url}/plants.csv`, {
          method: 'HEAD',
          headers: authorized,
        })
        assert.equal(answer.status, 200)
        assert.match(answer.headers.get('content-type') ?? '', /^text\/csv/)
      }
    })

    it('needs a token', async () => {
      const answer = await fetch(`${service.url}/plants.csv`)
      assert.equal(answer.status, 401)
    })
  })

  describe(`an export on ${engine.name}`, () => {
    let service: TestService
    let store: Store
    let url: string
    const count = 30
    const name = 'x'.repeat(500_000)
    /** As many tokens as exports may be under way, each as often as it may. */
    let owners: string[]
    before(async () => {
      url = await engine.newUrl()
      store = await engine.open(url)
      for (let id = 0; id < count; id++) await store.createPlant({ id: BigInt(id), name })
      service = await startService('sqlite::memory:', { store })
      const request = { name: 'test', scopes, lifetimeMs: undefined }
      const tokens = [await issueToken(store, request), await issueToken(store, request)]
      owners = Array.from(
        { length: maxSnapshots },
        (_, index) => tokens[Math.floor(index / maxSnapshotsOfToken)]?.token ?? '',
      )
    })

    it('is refused when its token reads two already, while others are served', async () => {
      const [token = ''] = owners
      for (let open = 0; open < maxSnapshotsOfToken; open++) await holdExport(service.url, token)
      const refused = await fetch(`${service.url}/plants.csv`, {
        headers: { Authorization: `Bearer ${token}` },
      })
      assert.equal(refused.status, 503)
      assert.match(await refused.text(), /50300.*This token/)
      const other = await startExport()
      assert.equal(other.status, 200)
      await other.text()
    })

    function startExport(address = service.url) {
      return fetch(`${address}/plants.ndjson`, {
        headers: { ...authorized, 'Accept-Encoding': 'identity' },
      })
    }

    it('is refused at once while there are many, until one of them is given up', async () => {
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
      let length = 0
      held.on('data', (chunk: Buffer) => {
        length += chunk.length
      })
      held.resume()
      if (!held.closed) await once(held, 'close')
      assert.ok(length < count * name.length, 'the export was sent completely')
    })

    it('shows one moment, however slowly it is read', async () => {
      const changing = await startService(url)
      const answer = await startExport(changing.url)
      for (let id = 0; id < count; id += 2)
        await changing.call({ method: 'DELETE', path: `/plants/${id}` })
      await changing.create(`{"id":${count},"name":"late"}`)
      const lines = (await answer.text()).trimEnd().split('\n')
      assert.deepEqual(
        lines.map((line) => JSON.parse(line).id),
        Array.from({ length: count }, (_, id) => id),
      )
    })
  })
}

describe('an export without a first piece', () => {
  /** A service whose snapshots are read by this function. */
  async function startWith(walkPlants: Snapshot['walkPlants']) {
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

  const request = { path: '/plants.ndjson', headers: {} }

  it('is answered as any failure, and releases its snapshot', async () => {
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

  it('releases its snapshot when its client has left, and logs no error', async () => {
    const begun = Promise.withResolvers<void>()
    const gate = Promise.withResolvers<void>()
    const { service, closed } = await startWith(async function* () {
      begun.resolve()
      await gate.promise
      yield [{ id: 1n, name: 'x', version: 1n }]
    })
    const socket = openSocket(service.url)
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

/** Begins an export and reads only its beginning: the rest is more than the system buffers. */
function holdExport(url: string, token = operatorToken): Promise<Socket> {
  const socket = openSocket(url)
  socket.write(
    toBytes({
      path: '/plants.ndjson',
      headers: { Authorization: `Bearer ${token}` },
    }),
  )
  return new Promise((resolve) => {
    socket.once('close', () => resolve(socket))
    socket.once('data', () => {
      socket.pause()
      resolve(socket)
    })
  })
}
