import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { writeMetrics } from '../../src/metrics/metric.ts'
import { toStoreMetrics } from '../../src/metrics/store-metrics.ts'
import { ends } from '../cli/ends.ts'
import { newDatabase } from '../support/databases.ts'
import { engines, postgres } from '../support/engines.ts'
import { newFolder } from '../support/folder.ts'
import { parseMetrics } from '../support/metrics.ts'
import { newCluster, startServer } from '../support/postgres.ts'
import { releaseAfterTest } from '../support/release.ts'
import { authorized, startService } from '../support/service.ts'
import { openPostgresStore } from '../support/stores.ts'
import { waitUntil } from '../support/wait.ts'
import { openSocket, toBytes } from '../support/wire.ts'

/** How many there were, and how long all of them took. */
function toTimes(samples: Map<string, number>, of: 'commit' | 'fsync') {
  const name = `plant_store_${of}_duration_seconds`
  const read = (suffix: string) => samples.get(`${name}_${suffix}`) ?? 0
  return { count: read('count'), sum: read('sum') }
}

for (const engine of engines) {
  describe(`the metrics of a store on ${engine.name}`, () => {
    it('show batches, their commits, and the size on disk', async () => {
      const url = await engine.newUrl()
      const service = await startService(url, { store: await engine.open(url) })
      const create = (id: number) => service.create(`{"id":${id},"name":"x"}`)
      await Promise.all(Array.from({ length: 20 }, (_, id) => create(id)))
      const samples = await service.scrape()
      const batches = samples.get('plant_store_batch_changes_count') ?? 0
      assert.ok(batches >= 1 && batches <= 21, String(batches))
      assert.ok((samples.get('plant_store_batch_changes_sum') ?? 0) >= 20)
      assert.equal(samples.get('plant_store_batch_duration_seconds_count'), batches)
      const commits = toTimes(samples, 'commit')
      const fsyncs = toTimes(samples, 'fsync')
      assert.equal(commits.count, batches)
      if (engine.name !== 'PostgreSQL') {
        assert.equal(fsyncs.count, batches)
        // A part of the commit, without its statements.
        assert.ok(fsyncs.sum > 0 && fsyncs.sum < commits.sum, `${fsyncs.sum} of ${commits.sum}`)
      }
      assert.ok((samples.get('plant_store_store_size_bytes{part="data"}') ?? 0) > 4_000)
      assert.equal(samples.get('plant_store_store_up'), 1)
      assert.equal(samples.get('plant_store_write_queue_changes'), 0)
    })

    it('show the length and age of its journal, followers, and receivers that are behind', async () => {
      const url = await engine.newUrl()
      const service = await startService(url)
      await ends(`webhook add http://127.0.0.1:9/none --database ${url}`, 0, /^/, newFolder())
      for (let id = 1; id <= 3; id++) await service.create(`{"id":${id},"name":"x"}`)
      const headers = { ...authorized, Accept: 'text/event-stream' }
      const follower = openSocket(service.url)
      follower.write(toBytes({ path: '/events', headers }))
      const followers = 'plant_store_http_requests_in_flight{operation="listEvents"}'
      await waitUntil(async () => (await service.sample(followers)) === 1, 'one follows')
      const samples = await service.scrape()
      assert.ok((samples.get('plant_store_journal_commits') ?? 0) >= 3)
      const age = samples.get('plant_store_journal_age_seconds') ?? -1
      assert.ok(age >= 0 && age < 600, String(age))
      assert.equal(samples.get('plant_store_webhook_receivers{state="active"}'), 1)
      assert.equal(samples.get('plant_store_webhook_receivers{state="paused"}'), 0)
      const failing = async () =>
        [...(await service.scrape())].some(
          ([name, value]) => name.startsWith('plant_store_webhook_failing_seconds{') && value > 0,
        )
      await waitUntil(failing, 'the receiver cannot be reached')
      // They are taken, and wait.
      const behind = (await service.scrape())
        .entries()
        .filter(([name]) => /_behind_commits\{/.test(name))
      const commits = [...behind].map(([, value]) => value)
      assert.deepEqual(commits, [3])
      assert.doesNotMatch(service.log.join(''), /whsec_|\/none/)
      follower.destroy()
      await waitUntil(async () => (await service.sample(followers)) === 0, 'nobody follows')
    })
  })
}

it('the metrics of PostgreSQL have the syncs of its log only where the server times them', async () => {
  const server = await startServer(await newCluster(), { track_wal_io_timing: 'on' })
  releaseAfterTest(server.stop)
  const timed = await openPostgresStore(server.toUrl('postgres'))
  await timed.createPlant({ id: 1n, name: 'x' })
  const read = async () => {
    const measured = await timed.measure()
    return parseMetrics(writeMetrics(toStoreMetrics(measured), 'text/plain'))
  }
  // The server reports what a connection did a moment later.
  await waitUntil(async () => toTimes(await read(), 'fsync').sum > 0, 'the syncs are told')
  const samples = await read()
  const syncs = toTimes(samples, 'fsync')
  assert.ok(syncs.count >= 1 && syncs.sum < 60, JSON.stringify(syncs))
  const untimed = await openPostgresStore(await newDatabase())
  assert.equal((await untimed.measure()).fsyncSeconds, undefined)
})

it('the metrics come although the store is away, and say so', async () => {
  const { store } = await postgres.openWithFault('not reachable')
  const service = await startService('sqlite::memory:', { store })
  assert.equal(await service.sample('plant_store_store_up'), 0)
})
