import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { describe, it } from 'node:test'
import { everyEngine } from '../support/engines.ts'
import { parseMetrics } from '../support/metrics.ts'
import { startService } from '../support/service.ts'

const places: Record<string, string> = {
  SQLite: 'main',
  PostgreSQL: 'server',
  'SQLite with a thread': 'thread',
}

const hasPromtool = spawnSync('promtool', ['--version']).status === 0

for (const engine of everyEngine) {
  describe(`the metrics of a store on ${engine.name}`, () => {
    it('show batches, where they are committed, and the size on disk', async () => {
      const url = await engine.newUrl()
      const service = await startService(url, { store: await engine.open(url) })
      const create = (id: number) => service.create(`{"id":${id},"name":"x"}`)
      await Promise.all(Array.from({ length: 20 }, (_, id) => create(id)))
      const { body } = await service.call({ path: '/metrics' })
      const samples = parseMetrics(body)
      const batches = samples.get('plant_store_batch_changes_count') ?? 0
      assert.ok(batches >= 1 && batches <= 21, String(batches))
      assert.ok((samples.get('plant_store_batch_changes_sum') ?? 0) >= 20)
      assert.equal(samples.get('plant_store_batch_duration_seconds_count'), batches)
      const place = `{place="${places[engine.name]}"}`
      assert.equal(samples.get(`plant_store_commit_duration_seconds_count${place}`), batches)
      assert.ok((samples.get('plant_store_store_size_bytes{part="data"}') ?? 0) > 4_000)
      assert.equal(samples.get('plant_store_store_up'), 1)
      assert.equal(samples.get('plant_store_write_queue_changes'), 0)
    })

    it('please promtool', { skip: hasPromtool ? false : 'promtool is not installed' }, async () => {
      const url = await engine.newUrl()
      const service = await startService(url, { store: await engine.open(url) })
      await service.create('{"id":1,"name":"x"}')
      const { body } = await service.call({ path: '/metrics' })
      const { status, stdout, stderr } = spawnSync('promtool', ['check', 'metrics'], {
        input: body,
        encoding: 'utf8',
      })
      assert.deepEqual({ status, said: stdout + stderr }, { status: 0, said: '' })
    })
  })
}

describe('the metrics of a store that is away', () => {
  it('say so, and come all the same', async () => {
    const engine = everyEngine.find(({ name }) => name === 'PostgreSQL')
    const faulty = await engine?.openWithFault('not reachable')
    assert.ok(faulty)
    const service = await startService('sqlite::memory:', { store: faulty.store })
    const { status, body } = await service.call({ path: '/metrics' })
    assert.equal(status, 200)
    assert.equal(parseMetrics(body).get('plant_store_store_up'), 0)
  })
})
