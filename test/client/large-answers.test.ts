import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { gzipSync } from 'node:zlib'
import { PlantStore } from '../../client/index.ts'
import { waitUntil } from '../support/wait.ts'
import { answer, openScriptedServer, type Script } from './scripted-server.ts'

const maxBytes = 16 * 1024 * 1024
const tooMuch = Buffer.alloc(maxBytes + 1, ' ')

/** Sends one byte too many, and never ends. */
function endless(status: number, contentType = 'application/json'): Script {
  return (_request, response) => {
    response.writeHead(status, { 'Content-Type': contentType, 'X-Request-Id': 'r1' })
    response.write(tooMuch)
  }
}

const gzipped: Script = (_request, response) => {
  response.writeHead(200, { 'Content-Encoding': 'gzip' }).write(gzipSync(tooMuch))
}

const position = answer(200, '[]', { Link: '</events?after=p0>; rel="next"' })

describe('an answer of more than 16 MiB', () => {
  const cases: [string, (store: PlantStore) => Promise<unknown>, Script[]][] = [
    ['a get', (store) => store.get(1n), [endless(200)]],
    ['a get that is compressed', (store) => store.get(1n), [gzipped]],
    ['a get that would be retried', (store) => store.get(1n), [endless(503)]],
    ['a create', (store) => store.create({ id: 1n, name: 'x' }), [endless(200)]],
    ['a list', (store) => store.list().next(), [endless(200)]],
    ['an import', (store) => store.importPlants([{ id: 1n, name: 'x' }]), [endless(200)]],
    ['a stream that is refused', (store) => store.events().next(), [endless(404)]],
    ['an event', (store) => store.events().next(), [endless(200, 'text/event-stream')]],
    ['a mirror', (store) => Array.fromAsync(store.mirror()), [position, endless(200)]],
  ]
  for (const [title, call, scripts] of cases) {
    it(`to ${title} ends the call and the connection, and is not asked for again`, async () => {
      const { url, requests } = await openScriptedServer(...scripts)
      const store = new PlantStore({ url, token: 'secret-token', retries: 1 })
      await assert.rejects(call(store), {
        name: 'PlantStoreError',
        error: undefined,
        message: 'The answer of the service exceeds 16 MiB: check the url.',
      })
      assert.equal(requests.length, scripts.length)
      await waitUntil(() => requests.at(-1)?.socket.destroyed === true, 'the connection is closed')
    })
  }

  it('has the status and the request id that came with it', async () => {
    const { url } = await openScriptedServer(endless(200))
    const call = new PlantStore({ url, token: 'secret-token' }).get(1n)
    await assert.rejects(call, { status: 200, requestId: 'r1' })
  })

  it('is not one of 16 MiB, which is read', async () => {
    const { url } = await openScriptedServer(
      answer(200, '{"id":1,"name":"Ficus"}'.padEnd(maxBytes), { ETag: '"1"' }),
    )
    const found = await new PlantStore({ url, token: 'secret-token' }).get(1n)
    assert.deepEqual(found, { id: 1n, name: 'Ficus', etag: '"1"' })
  })
})
