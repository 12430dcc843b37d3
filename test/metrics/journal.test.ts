import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { run } from '../support/command.ts'
import { engines } from '../support/engines.ts'
import { newFolder } from '../support/folder.ts'
import { parseMetrics } from '../support/metrics.ts'
import { authorized, startService } from '../support/service.ts'
import { waitUntil } from '../support/wait.ts'
import { openSocket, toBytes } from '../support/wire.ts'

for (const engine of engines) {
  describe(`the metrics of the journal on ${engine.name}`, () => {
    it('show its length and age, followers, and receivers that are behind', async () => {
      const url = await engine.newUrl()
      const service = await startService(url)
      const scrape = async () => parseMetrics((await service.call({ path: '/metrics' })).body)
      const receiver = await run(['webhook', 'add', 'http://127.0.0.1:9/none', '--json'], {
        folder: newFolder(),
        env: { DATABASE_URL: url },
      })
      assert.equal(receiver.exitCode, 0, receiver.stderr)
      for (let id = 1; id <= 3; id++) await service.create(`{"id":${id},"name":"x"}`)
      const headers = { ...authorized, Accept: 'text/event-stream' }
      const follower = openSocket(service.url)
      follower.write(toBytes({ path: '/events', headers }))
      const followers = 'plant_store_http_requests_in_flight{operation="listEvents"}'
      await waitUntil(async () => (await scrape()).get(followers) === 1, 'one follows')
      const samples = await scrape()
      assert.ok((samples.get('plant_store_journal_commits') ?? 0) >= 3)
      const age = samples.get('plant_store_journal_age_seconds') ?? -1
      assert.ok(age >= 0 && age < 600, String(age))
      assert.equal(samples.get('plant_store_webhook_receivers{state="active"}'), 1)
      assert.equal(samples.get('plant_store_webhook_receivers{state="paused"}'), 0)
      const failing = async () =>
        [...(await scrape())].some(
          ([name, value]) => name.startsWith('plant_store_webhook_failing_seconds{') && value > 0,
        )
      await waitUntil(failing, 'the receiver cannot be reached')
      // They are taken, and wait.
      const behind = (await scrape()).entries().filter(([name]) => /_behind_commits\{/.test(name))
      assert.deepEqual(
        [...behind].map(([, value]) => value),
        [3],
      )
      follower.destroy()
      await waitUntil(async () => (await scrape()).get(followers) === 0, 'nobody follows')
    })
  })
}
