import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { engines } from '../support/engines.ts'
import { clean, judge } from './lab/checker.ts'
import { followFeed } from './lab/feed.ts'
import { readFinalState } from './lab/final-state.ts'
import { countOutcomes, newHistory, waitForWrites } from './lab/history.ts'
import { startLoad } from './lab/load.ts'
import { scale } from './lab/scale.ts'
import { startProcess, token } from './lab/service-process.ts'

for (const engine of engines) {
  const count = engine.name === 'SQLite' ? 2 : 3
  describe(`${count} services on one store of ${engine.name}, under load`, () => {
    it('send every follower the same changes, each once', async (test) => {
      const database = await engine.newUrl()
      // The first makes the store.
      const services = [await startProcess({ database })]
      const others = Array.from({ length: count - 1 }, () => startProcess({ database }))
      services.push(...(await Promise.all(others)))
      const history = newHistory()
      const urls = services.map(({ url }) => url)
      const feeds = urls.map((url) => followFeed(() => url, token))
      const load = startLoad(history, { urls, token, writers: 12, readers: 1 })
      await waitForWrites(history, scale(40, 10_000))
      // These have to catch up with what is there, while more comes.
      feeds.push(...urls.map((url) => followFeed(() => url, token)))
      await waitForWrites(history, scale(40, 10_000))
      await load.stop()
      const states = await Promise.all(urls.map((url) => readFinalState(url, token, history)))
      for (const state of states) {
        assert.deepEqual(judge(history, state), clean)
        assert.deepEqual(state.events, states[0]?.events)
      }
      const events = states[0]?.events ?? []
      for (const feed of feeds) {
        await feed.waitFor(events.at(-1)?.position)
        assert.deepEqual(feed.events, events)
      }
      test.diagnostic(JSON.stringify({ ...countOutcomes(history), events: events.length }))
    })
  })
}
