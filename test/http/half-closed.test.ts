import assert from 'node:assert/strict'
import { once } from 'node:events'
import { text } from 'node:stream/consumers'
import { describe, it } from 'node:test'
import { engines } from '../support/engines.ts'
import { authorized, startService, toCreate } from '../support/service.ts'
import { openSocket, toBytes } from '../support/wire.ts'

const statusesOf = (answer: string) =>
  [...answer.matchAll(/HTTP\/1\.1 (\d+) /g)].map(([, status]) => Number(status))

/** Sends bytes, ends the sending side at once, and answers all that comes back. */
async function sendAndEnd(url: string, ...requests: Buffer[]): Promise<number[]> {
  return statusesOf(await text(openSocket(url).end(Buffer.concat(requests))))
}

for (const engine of engines) {
  describe(`a client that ends its side after the last request (${engine.name})`, () => {
    it('gets every answer, and then the end', async () => {
      const { url } = await startService(await engine.newUrl())
      const get = (path: string) => toBytes({ path, headers: authorized })
      const file = toBytes({
        method: 'POST',
        path: '/plants.ndjson',
        headers: { ...authorized, 'Content-Type': 'application/x-ndjson' },
        body: '{"id":2,"name":"x"}\n',
      })
      assert.deepEqual(await sendAndEnd(url, toCreate(1), toCreate(1)), [200, 409])
      for (const path of [
        '/plants',
        '/plants/1',
        '/plants.csv',
        '/events',
        '/metrics',
        '/readyz',
      ]) {
        assert.deepEqual(await sendAndEnd(url, get(path)), [200], path)
      }
      assert.deepEqual(await sendAndEnd(url, file), [200])
      const stream = { ...authorized, Accept: 'text/event-stream' }
      assert.deepEqual(await sendAndEnd(url, toBytes({ path: '/events', headers: stream })), [200])
    })

    it('gets the answer to a write however long that takes', async () => {
      const url = await engine.newUrl()
      const service = await startService(url, { store: await engine.open(url) })
      const release = await engine.block(url)
      const socket = openSocket(service.url).end(toCreate(1))
      const answer = text(socket)
      await once(socket, 'finish')
      await release()
      assert.deepEqual(statusesOf(await answer), [200])
    })
  })
}
