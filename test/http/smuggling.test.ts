import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { collect, parseStrictly } from '../faults/answer-stream.ts'
import { farewell } from '../faults/hostile-requests.ts'
import { startService } from '../support/service.ts'
import { smuggledId, vectors } from './smuggling.ts'

describe('a request that is smuggled', async () => {
  const service = await startService('sqlite::memory:', {
    timeouts: { headersTimeoutMs: 300, requestTimeoutMs: 600, keepAliveTimeoutMs: 300 },
  })
  const port = Number(new URL(service.url).port)

  for (const { title, bytes, statuses, isClosed } of vectors) {
    it(`is not done: ${title}`, async () => {
      // Where the connection goes on, the farewell shows that both sides agree about where the request ends.
      const sent = [Buffer.from(bytes, 'latin1'), ...(isClosed ? [] : [farewell])]
      const answers = parseStrictly(await collect(port, [Buffer.concat(sent)]))
      // Removed where it is there, so that one vector that gets through does not speak for the others.
      const { status } = await service.call({ method: 'DELETE', path: `/plants/${smuggledId}` })
      assert.equal(status, 404, 'the smuggled request was done')
      assert.deepEqual(
        answers.map(({ status }) => status),
        isClosed ? statuses : [...statuses, 200],
      )
      assert.equal(answers.at(-1)?.headers.get('connection'), 'close')
    })
  }

  it('would be seen if it were done', async () => {
    const [good] = parseStrictly(await collect(port, [Buffer.from(toGood(), 'latin1')]))
    assert.equal(good?.status, 200)
    assert.equal((await service.call({ path: `/plants/${smuggledId}` })).status, 200)
  })
})

/** The smuggled request alone, as the vectors have it. */
function toGood(): string {
  const { bytes = '' } = vectors.at(-1) ?? {}
  return bytes.slice(bytes.indexOf('POST'))
}
