import assert from 'node:assert/strict'
import { before, describe, it } from 'node:test'
import { sqlite } from '../support/engines.ts'
import { authorized, startService, type TestService } from '../support/service.ts'
import { exchange, toBytes } from '../support/wire.ts'

describe('a delete with a body', () => {
  let service: TestService
  let impatient: TestService
  before(async () => {
    const url = await sqlite.newUrl()
    service = await startService(url)
    impatient = await startService(url, {
      timeouts: { headersTimeoutMs: 200, requestTimeoutMs: 400 },
    })
  })

  async function remove(
    headers: Record<string, string>,
    rest: string,
    { url } = service,
  ): Promise<number[]> {
    await service.create('{"id":1,"name":"x"}')
    const head = toBytes({
      method: 'DELETE',
      path: '/plants/1',
      headers: { ...authorized, ...headers },
    })
    const bytes = Buffer.concat([head, Buffer.from(rest)])
    return (await exchange(url, bytes)).map(({ status }) => status)
  }

  const isThere = async () => (await service.call({ path: '/plants/1' })).status === 200

  it('deletes nothing when the body is broken or incomplete', async () => {
    assert.deepEqual(await remove({ 'Transfer-Encoding': 'chunked' }, '1\r\nxZZ'), [400])
    assert.ok(await isThere())
    assert.deepEqual(await remove({ 'Content-Length': '9' }, 'x', impatient), [408])
    assert.ok(await isThere())
  })

  it('deletes the plant when the body is complete, whatever it holds', async () => {
    assert.deepEqual(await remove({ 'Content-Length': '2' }, '{x'), [204])
    assert.deepEqual(await remove({ 'Transfer-Encoding': 'chunked' }, '1\r\nx\r\n0\r\n\r\n'), [204])
    assert.deepEqual(await remove({ 'Content-Length': '1', Expect: '100-continue' }, 'x'), [204])
    assert.deepEqual(await remove({ 'Content-Length': '0' }, ''), [204])
    assert.ok(!(await isThere()))
  })
})
