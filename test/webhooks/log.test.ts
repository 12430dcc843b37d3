import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { pino } from 'pino'
import { engines } from '../support/engines.ts'
import { releaseAfterTest } from '../support/release.ts'
import { waitUntil } from '../support/wait.ts'
import { openTestReceiver } from './test-receiver.ts'
import { add, createMany, openStores, openTestSender } from './test-sender.ts'

for (const engine of engines) {
  describe(`the log of the sender on ${engine.name}`, () => {
    it('says once that a receiver is failing, whatever it takes meanwhile, and once that it works again', async () => {
      const { store } = await openStores(engine)
      const receiver = await openTestReceiver()
      const { id } = await add(store, receiver.url)
      const lines: Record<string, unknown>[] = []
      const write = (line: string) => void lines.push(JSON.parse(line))
      const logger = pino({ level: 'info', base: null, timestamp: false }, { write })
      let isUp = false
      receiver.answer = ({ plantId }) => (isUp || BigInt(plantId) > 3n ? 200 : 503)
      const sender = openTestSender(store, { retryDelaysMs: Array(1_000).fill(20) }, logger)
      releaseAfterTest(sender.close)
      await createMany(store, 1n, 3)
      const attempts = () => receiver.received.filter(({ plantId }) => plantId === '3').length
      await waitUntil(() => attempts() > 1, 'a change is tried again')
      await createMany(store, 4n, 20)
      await receiver.waitFor(20)
      const before = attempts()
      await waitUntil(() => attempts() > before + 1, 'it is tried again')
      assert.deepEqual(lines, [
        {
          level: 40,
          receiver: id,
          status: 503,
          error: 'answered 503',
          msg: 'webhooks: the receiver is failing; its changes are retried',
        },
      ])
      isUp = true
      await waitUntil(() => lines.length > 1, 'another line')
      assert.deepEqual(lines.slice(1), [
        { level: 30, receiver: id, msg: 'webhooks: the receiver works again' },
      ])
      assert.equal(receiver.taken().length, 23)
      await store.createPlant({ id: 24n, name: 'x' })
      await receiver.waitFor(24)
      await sender.close()
      assert.equal(lines.length, 2)
    })
  })
}
