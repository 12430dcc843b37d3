import assert from 'node:assert/strict'
import { once } from 'node:events'
import type { Socket } from 'node:net'
import { describe, it } from 'node:test'
import type { Snapshot } from '../../src/store/store.ts'
import { sqlite } from '../support/engines.ts'
import { authorized, startService, type TestServiceOptions } from '../support/service.ts'
import { openSocket } from '../support/wire.ts'

const name = 'x'.repeat(500_000)

/** Starts a service whose exports never come to an end, unless the walk itself ends. */
async function startWith(
  walkPlants: Snapshot['walkPlants'],
  timeouts: TestServiceOptions['timeouts'] = {},
) {
  const store = await sqlite.open(await sqlite.newUrl())
  const openSnapshot = async () => ({ ...(await store.openSnapshot()), walkPlants })
  return startService('sqlite::memory:', { store: { ...store, openSnapshot }, timeouts })
}

async function* walkForever() {
  for (let id = 0n; ; id++) yield [{ id, name, version: 1n }]
}

async function* walkOnce() {
  yield [{ id: 1n, name, version: 1n }]
}

interface Export {
  readonly socket: Socket
  /** How the connection ends, once everything has been read. */
  readonly ended: Promise<'end' | 'ECONNRESET'>
}

/** Begins an export over HTTP/1.0, whose answer has no length and no chunks, and reads its start. */
async function begin(url: string, accepted = 'identity'): Promise<Export> {
  const socket = openSocket(url)
  socket.write(
    `GET /plants.ndjson HTTP/1.0\r\nAuthorization: ${authorized.Authorization}\r\nAccept-Encoding: ${accepted}\r\n\r\n`,
  )
  const ended = new Promise<'end' | 'ECONNRESET'>((resolve) => {
    socket.once('end', () => resolve('end'))
    socket.once('error', ({ code }: NodeJS.ErrnoException) => resolve(code as 'ECONNRESET'))
  })
  await once(socket, 'data')
  socket.pause()
  return { socket, ended }
}

/** Reads the rest, and tells how the connection ended. */
function readToEnd({ socket, ended }: Export): Promise<'end' | 'ECONNRESET'> {
  socket.resume()
  return ended
}

describe('an export over HTTP/1.0', () => {
  it('ends with its connection when it is whole', async () => {
    const service = await startWith(walkOnce)
    assert.equal(await readToEnd(await begin(service.url)), 'end')
  })

  for (const accepted of ['identity', 'gzip']) {
    it(`ends with a reset when it fails (${accepted}), and looks whole to nobody`, async () => {
      const failing = Promise.withResolvers<void>()
      const service = await startWith(async function* () {
        yield* walkOnce()
        await failing.promise
        throw new Error('no page')
      })
      const begun = await begin(service.url, accepted)
      failing.resolve()
      assert.equal(await readToEnd(begun), 'ECONNRESET')
    })
  }

  it('ends with a reset when it takes too long', async () => {
    const service = await startWith(walkForever, { exportMs: 200 })
    assert.equal(await readToEnd(await begin(service.url)), 'ECONNRESET')
  })

  it('ends with a reset when its client stops reading', async () => {
    const service = await startWith(walkForever, { stallTimeoutMs: 200 })
    const begun = await begin(service.url)
    while (/connections 2$/m.test((await service.call({ path: '/metrics' })).body));
    assert.equal(await readToEnd(begun), 'ECONNRESET')
  })

  it('ends with a reset when the service does not wait for it any longer', async () => {
    const service = await startWith(walkForever, { shutdownMs: 200 })
    const begun = await begin(service.url)
    assert.equal(await service.close(), 1)
    assert.equal(await readToEnd(begun), 'ECONNRESET')
  })
})
