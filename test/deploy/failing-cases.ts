import assert from 'node:assert/strict'
import { once } from 'node:events'
import { before, describe, it } from 'node:test'
import { start } from '../support/command.ts'
import { engines } from '../support/engines.ts'
import { newFolder } from '../support/folder.ts'
import { openProxy } from '../support/proxy.ts'
import { json, startService, type TestService } from '../support/service.ts'
import { openSqliteStore } from '../support/stores.ts'
import { waitUntil } from '../support/wait.ts'
import { openSocket, toBytes } from '../support/wire.ts'

// Tests that fail while they hold everything open that a test can open: failing-tests.ts runs
// this file, which has to end nevertheless.

describe('a failing test', () => {
  let service: TestService
  before(async () => {
    service = await startService('sqlite::memory:')
  })

  for (const engine of engines) {
    it(`holds a blocked write to ${engine.name}`, async () => {
      const url = await engine.newUrl()
      const store = await engine.open(url)
      await engine.block(url)
      Promise.resolve(store.createPlant({ id: 1n, name: 'x' })).catch(() => {})
      assert.fail('red')
    })

    it(`holds a service on ${engine.name} that is not reachable`, async () => {
      const { store } = await engine.openWithFault('not reachable')
      await startService('sqlite::memory:', { store })
      assert.fail('red')
    })
  }

  it('holds a request that is never answered', async () => {
    const store = openSqliteStore(':memory:')
    const createPlant = () => new Promise<never>(() => {})
    const { url } = await startService('sqlite::memory:', { store: { ...store, createPlant } })
    const socket = openSocket(url)
    const request = { method: 'POST', path: '/plants', headers: json, body: '{"id":1,"name":"x"}' }
    socket.write(toBytes(request))
    await service.call({ path: '/healthz' })
    assert.fail('red')
  })

  it('holds a proxy with a connection through it', async () => {
    const { hostname, port } = new URL(service.url)
    const proxy = await openProxy(hostname, Number(port))
    await once(openSocket(`http://127.0.0.1:${proxy.port}`), 'connect')
    assert.fail('red')
  })

  it('holds a process that is stopped', async () => {
    const { child, waitFor } = start(['serve'], { folder: newFolder(), env: { PORT: '0' } })
    await waitFor(/address/)
    child.kill('SIGSTOP')
    assert.fail('red')
  })

  it('holds a wait in vain', async () => {
    waitUntil(() => false, 'never').catch(() => {})
    assert.fail('red')
  })
})

// It is opened while the tests are collected, even if none of the suite is chosen by name.
describe('a suite that opens a service in its body', async () => {
  const { url } = await startService('sqlite::memory:')

  it('fails as well', () => {
    assert.fail(url)
  })
})
