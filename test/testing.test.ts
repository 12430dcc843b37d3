import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { describe, it } from 'node:test'
import { promisify } from 'node:util'
import { type NewPlant, startPlantStore, type TestPlantStore } from '../src/testing.ts'
import { engines } from './support/engines.ts'
import { newFolder } from './support/folder.ts'
import { runNode } from './support/packages.ts'
import { findFreePort } from './support/postgres.ts'
import { openSocket } from './support/wire.ts'

const source = new URL('../src/testing.ts', import.meta.url).href
const largest = { id: 9223372036854775807n, name: 'Ficus lyrata', tag: 'indoor' }
const least = { id: -9223372036854775808n, name: 'Acer palmatum' }

const list = ({ client }: TestPlantStore) => Array.fromAsync(client.list())

describe('startPlantStore', () => {
  it('serves the plants that it is given, with ids exact to the last digit', async () => {
    await using store = await startPlantStore({ plants: [largest, least] })
    assert.deepEqual(await list(store), [least, largest])
    const headers = { Authorization: `Bearer ${store.token}` }
    const answer = await fetch(`${store.url}/plants?limit=1`, { headers })
    assert.equal(await answer.text(), '[{"id":-9223372036854775808,"name":"Acer palmatum"}]')
    assert.equal((await fetch(`${store.url}/metrics`, { headers })).status, 200)
  })

  it('starts several at once, each with a store of its own', async () => {
    const stores = await Promise.all([1n, 2n, 3n].map((id) => startWith({ id, name: 'x' })))
    assert.equal(new Set(stores.flatMap(({ url, token }) => [url, token])).size, 6)
    for (const [index, store] of stores.entries()) {
      assert.deepEqual(await list(store), [{ id: BigInt(index + 1), name: 'x' }])
      await store.stop()
    }
  })

  it('takes a token and a port, which is free again once it has stopped', async () => {
    const token = 'a-token-for-the-tests-of-others'
    const port = await findFreePort()
    await (await startPlantStore({ token, port })).stop()
    await using second = await startPlantStore({ token, port })
    assert.deepEqual([second.url, second.token], [`http://127.0.0.1:${port}`, token])
    assert.deepEqual(await list(second), [])
  })

  it('refuses a wrong plant or token with a sentence, and leaves no service behind', async () => {
    const port = await findFreePort()
    const plants = [{ id: 2n ** 63n, name: 'x' }]
    await assert.rejects(startPlantStore({ port, plants }), /"id" must be an integer from/)
    await (await startPlantStore({ port })).stop()
    await assert.rejects(startWith({ id: 1, name: 'x' } as never), /id must be a bigint/)
    await assert.rejects(startPlantStore({ token: 'short' }), /20 or more visible/)
    await assert.rejects(startPlantStore({ port: 65536 }), /port must be a number/)
  })

  // As a program: whatever else this process has open would keep it running, and print.
  it('prints nothing, and lets the process end once all have stopped', async () => {
    const program = `const { startPlantStore } = await import('${source}')
      for (let turn = 0; turn < 20; turn++) {
        await using store = await startPlantStore()
        await store.client.get(1n)
        await fetch(store.url + '/nowhere')
      }`
    const args = ['--input-type=module', '--eval', program]
    const printed = await promisify(execFile)(process.execPath, args)
    assert.deepEqual(printed, { stdout: '', stderr: '' })
  })
})

it('docs/testing.md has an example that prints what its comments say', async () => {
  const page = readFileSync(new URL('../docs/testing.md', import.meta.url), 'utf8')
  const [, example = ''] = /^```ts\n([\s\S]*?)^```$/m.exec(page) ?? []
  const program = join(newFolder(), 'example.mts')
  writeFileSync(program, example.replace('plant-store/testing', source))
  const expected = [...example.matchAll(/console\.log\(.*\) \/\/ (.*\n)/g)].map(([, text]) => text)
  assert.equal(expected.length, 2)
  assert.equal(await runNode(import.meta.dirname, [program]), expected.join(''))
})

describe('reset', () => {
  for (const engine of engines) {
    it(`leaves exactly the plants that it is given, on ${engine.name}`, async () => {
      const many = Array.from({ length: 1_234 }, (_, id) => ({ id: BigInt(id), name: `${id}` }))
      await using store = await startPlantStore({ database: await engine.newUrl(), plants: many })
      assert.deepEqual(await list(store), many)
      await store.reset([largest, least])
      assert.deepEqual(await list(store), [least, largest])
      await store.reset()
      assert.deepEqual(await list(store), [])
    })

    it(`forgets idempotency keys, on ${engine.name}`, async () => {
      await using store = await startPlantStore({ database: await engine.newUrl() })
      await store.client.create(largest, { idempotencyKey: 'fixed' })
      await store.reset()
      await store.client.create(least, { idempotencyKey: 'fixed' })
      assert.deepEqual(await list(store), [least])
    })
  }

  it('changes nothing when one of the plants is wrong', async () => {
    await using store = await startWith(largest)
    await assert.rejects(store.reset([least, { id: 1n } as never]), /"name" is missing/)
    assert.deepEqual(await list(store), [largest])
  })

  it('is seen by those who follow the changes', async () => {
    await using store = await startWith(largest)
    const events = store.client.events()
    await events.next()
    await store.reset([least])
    const [deleted, created] = [await events.next(), await events.next()]
    assert.deepEqual([deleted.value?.type, deleted.value?.plant], ['plant.deleted', largest])
    assert.deepEqual([created.value?.type, created.value?.plant], ['plant.created', least])
    await events.return?.()
  })
})

describe('stop', () => {
  it('answers a request that has begun, and closes connections that are idle', async () => {
    const store = await startWith(largest)
    const socket = openSocket(store.url)
    const answer = text(socket)
    const headers = `Authorization: Bearer ${store.token}\r\nContent-Type: application/json`
    socket.write(`POST /plants HTTP/1.1\r\nHost: a\r\n${headers}\r\nContent-Length: 19\r\n\r\n`)
    // Its connection is the later one, and idle from here on.
    await list(store)
    const stopping = [store.stop(), store.stop()]
    socket.write('{"id":1,"name":"x"}')
    assert.match(await answer, /^HTTP\/1\.1 200 OK/)
    await Promise.all(stopping)
    await assert.rejects(fetch(store.url))
  })

  it('ends streams of events', async () => {
    const store = await startWith(largest)
    const headers = { Authorization: `Bearer ${store.token}`, Accept: 'text/event-stream' }
    const stream = await fetch(`${store.url}/events`, { headers })
    await store.stop()
    assert.match(await stream.text(), /^retry: /m)
  })
})

function startWith(plant: NewPlant): Promise<TestPlantStore> {
  return startPlantStore({ plants: [plant] })
}
