import assert from 'node:assert/strict'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { describe, it } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { newFolder } from '../support/folder.ts'
import { waitUntil } from '../support/wait.ts'
import { clean, judge } from './lab/checker.ts'
import { followFeed } from './lab/feed.ts'
import { readFinalState } from './lab/final-state.ts'
import { countOutcomes, newHistory, waitForWrites } from './lab/history.ts'
import { startLoad } from './lab/load.ts'
import { scale } from './lab/scale.ts'
import { startProcess, token } from './lab/service-process.ts'

const cycles = scale(2, 1_000)
/** A kill comes after some writes and a part of the time of a commit, to hit every moment. */
const maxWrites = scale(40, 80)
const maxDelayMs = 10

describe('a service on SQLite', () => {
  it(`loses and invents nothing when it is killed ${cycles} times under load`, async (test) => {
    const path = join(newFolder(), 'plants.db')
    const database = `sqlite:${path}`
    const history = newHistory()
    const startedAt = performance.now()
    // The first start fills the compile cache, which a killed process does not write.
    await (await startProcess({ database })).end('SIGINT')
    let url = 'http://127.0.0.1:1'
    const feed = followFeed(() => url, token)
    for (let cycle = 0; cycle < cycles; cycle++) {
      const service = await startProcess({ database })
      url = service.url
      const load = startLoad(history, { urls: [service.url], token, writers: 8, readers: 2 })
      await waitForWrites(history, Math.ceil(Math.random() * maxWrites))
      await sleep(Math.random() * maxDelayMs)
      await service.end('SIGKILL')
      await load.stop()
    }
    const service = await startProcess({ database })
    url = service.url
    // Sends the keyed creates again that got no answer.
    const load = startLoad(history, { urls: [service.url], token, writers: 8, readers: 2 })
    await waitUntil(() => history.unfinished.length === 0, 'all keyed creates are answered')
    await load.stop()
    const state = await readFinalState(service.url, token, history)
    const verdict = judge(history, state)
    await feed.waitFor(state.events.at(-1)?.position)
    await service.end('SIGKILL')
    using db = new DatabaseSync(path)
    const integrity = db.prepare('PRAGMA integrity_check').all()
    test.diagnostic(
      JSON.stringify({
        cycles,
        seconds: Math.round((performance.now() - startedAt) / 1000),
        ...countOutcomes(history),
        ...verdict,
      }),
    )
    assert.deepEqual(verdict, clean)
    assert.deepEqual(feed.events, state.events)
    assert.deepEqual(
      integrity.map((row) => row.integrity_check),
      ['ok'],
    )
    const { ok, unknown } = countOutcomes(history)
    assert.ok(ok > 10 * cycles, `${ok} acknowledged`)
    assert.ok(unknown >= cycles / 2, `${unknown} without an answer: the kills did not hit the load`)
  })
})
