import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { describe, it } from 'node:test'
import { postgres } from '../support/engines.ts'
import { newFolder } from '../support/folder.ts'
import { startService } from '../support/service.ts'
import { ends } from './ends.ts'

describe('plant-store ready', () => {
  const folder = newFolder()
  const closed = 'http://127.0.0.1:9'

  it('ends with 0 when the service is ready', async () => {
    const { url } = await startService('sqlite::memory:')
    const env = { PORT: new URL(url).port }
    assert.equal(await ends('ready', 0, '', { folder, env }), '')
    for (const address of [url, `${url}/`]) {
      assert.equal(await ends(`ready --url ${address} --wait 5s`, 0, '', folder), '')
    }
  })

  it('ends with 1 and the reason when it is not', async () => {
    const faulty = await postgres.openWithFault('not reachable')
    assert.ok(faulty)
    const { url } = await startService('sqlite::memory:', { store: faulty.store })
    await ends(`ready --url ${url}`, 1, `${url} is not ready: it answers 503.\n`, folder)
  })

  it('ends with 1 for a HOST that no URL can have', async () => {
    const env = { HOST: 'fe80::1%lo', PORT: '9' }
    const said = 'http://[fe80::1%lo]:9 is not ready: Invalid URL.\n'
    await ends('ready', 1, said, { folder, env })
  })

  it('waits no longer once the process has ended', async () => {
    const { pid } = spawnSync(process.execPath, ['--version'])
    const said = `${closed} is not ready: process ${pid} has ended.\n`
    await ends(`ready --url ${closed} --wait 9999s --pid ${pid}`, 1, said, folder)
  })

  it('names what is wrong while the process runs, even at a port that browsers refuse', async () => {
    const said = /^http:\/\/127\.0\.0\.1:9 is not ready: .*ECONNREFUSED.*\.\n$/
    await ends(`ready --url ${closed} --pid ${process.pid}`, 1, said, folder)
  })
})
