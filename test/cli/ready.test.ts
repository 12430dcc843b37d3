import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { describe, it } from 'node:test'
import { run } from '../support/command.ts'
import { postgres } from '../support/engines.ts'
import { newFolder } from '../support/folder.ts'
import { startService } from '../support/service.ts'

describe('plant-store ready', () => {
  it('ends with 0 when the service is ready', async () => {
    const { url } = await startService('sqlite::memory:')
    const env = { PORT: new URL(url).port }
    const byPort = await run(['ready'], { folder: newFolder(), env })
    assert.deepEqual(byPort, { exitCode: 0, stdout: '', stderr: '' })
    for (const address of [url, `${url}/`]) {
      const byUrl = await run(['ready', '--url', address, '--wait', '5s'], { folder: newFolder() })
      assert.deepEqual(byUrl, { exitCode: 0, stdout: '', stderr: '' })
    }
  })

  it('ends with 1 and the reason when it is not', async () => {
    const faulty = await postgres.openWithFault('not reachable')
    assert.ok(faulty)
    const { url } = await startService('sqlite::memory:', { store: faulty.store })
    const { exitCode, stderr } = await run(['ready', '--url', url], { folder: newFolder() })
    assert.equal(stderr, `${url} is not ready: it answers 503.\n`)
    assert.equal(exitCode, 1)
  })

  it('ends with 1 where nothing listens, even at a port that browsers refuse', async () => {
    const closed = await run(['ready', '--url', 'http://127.0.0.1:9'], { folder: newFolder() })
    assert.equal(closed.exitCode, 1)
    assert.match(closed.stderr, /^http:\/\/127\.0\.0\.1:9 is not ready: .*ECONNREFUSED.*\.\n$/)
  })

  it('ends with 1 for a HOST that no URL can have', async () => {
    const env = { HOST: 'fe80::1%lo', PORT: '9' }
    const { exitCode, stderr } = await run(['ready'], { folder: newFolder(), env })
    assert.equal(stderr, 'http://[fe80::1%lo]:9 is not ready: Invalid URL.\n')
    assert.equal(exitCode, 1)
  })

  it('waits no longer once the process has ended', async () => {
    const url = 'http://127.0.0.1:9'
    const { pid } = spawnSync(process.execPath, ['--version'])
    const wait = ['--wait', '9999s', '--pid', `${pid}`]
    const { exitCode, stderr } = await run(['ready', '--url', url, ...wait], {
      folder: newFolder(),
    })
    assert.equal(stderr, `${url} is not ready: process ${pid} has ended.\n`)
    assert.equal(exitCode, 1)
  })

  it('names what is wrong while the process runs', async () => {
    const args = ['ready', '--url', 'http://127.0.0.1:9', '--pid', `${process.pid}`]
    const { stderr } = await run(args, { folder: newFolder() })
    assert.match(stderr, /^http:\/\/127\.0\.0\.1:9 is not ready: (?!process).+\.\n$/)
  })
})
