import assert from 'node:assert/strict'
import { before, describe, it } from 'node:test'
import { collect, parseStrictly } from '../faults/lab/answer-stream.ts'
import { farewell } from '../faults/lab/hostile-requests.ts'
import { startService, type TestService } from '../support/service.ts'
import { smuggledId, vectors } from './smuggling.ts'

describe('a smuggled request', () => {
  let service: TestService
  let port: number
  before(async () => {
    service = await startService('sqlite::memory:')
    port = Number(new URL(service.url).port)
  })

  for (const { title, bytes, statuses, isClosed } of vectors) {
    it(`is not executed: ${title}`, async () => {
      // Where the connection goes on, the farewell shows that both sides see the same end.
      const sent = [Buffer.from(bytes, 'latin1'), ...(isClosed ? [] : [farewell])]
      const answers = parseStrictly(await collect(port, [Buffer.concat(sent)]))
      // Deletes both plants if they are there, so that no vector depends on another.
      await service.call({ method: 'DELETE', path: '/plants/1' })
      const { status } = await service.call({ method: 'DELETE', path: `/plants/${smuggledId}` })
      assert.equal(status, 404, 'the smuggled request was executed')
      assert.deepEqual(
        answers.map(({ status }) => status),
        isClosed ? statuses : [...statuses, 200],
      )
      assert.equal(answers.at(-1)?.headers.get('connection'), 'close')
    })
  }

  it('is noticed if it is executed (control)', async () => {
    const sent = Buffer.concat([Buffer.from(toGood(), 'latin1'), farewell])
    const [good] = parseStrictly(await collect(port, [sent]))
    assert.equal(good?.status, 200)
    assert.equal((await service.call({ path: `/plants/${smuggledId}` })).status, 200)
  })
})

/** The smuggled request alone, as it is in the vectors. */
function toGood(): string {
  const { bytes = '' } = vectors.at(-1) ?? {}
  return bytes.slice(bytes.indexOf('POST'))
}
