import assert from 'node:assert/strict'
import { join } from 'node:path'
import { describe, it } from 'node:test'
import { postgres } from '../support/engines.ts'
import { newFolder } from '../support/folder.ts'
import { findFreePort } from '../support/postgres.ts'
import { openNotes, toAccount } from './lab/accepted.ts'
import { openBalancer } from './lab/balancer.ts'
import { clean, judge } from './lab/checker.ts'
import { followFeed } from './lab/feed.ts'
import { readFinalState } from './lab/final-state.ts'
import { countOutcomes, newHistory, waitForWrites } from './lab/history.ts'
import { startLoad } from './lab/load.ts'
import type { Sent } from './lab/notes.ts'
import { scale } from './lab/scale.ts'
import { startProcess, token } from './lab/service-process.ts'

const rounds = scale(1, 20)
const thinkMs = scale(50, 0)

describe('two services on PostgreSQL behind a balancer', () => {
  it('answer every request while they are restarted in turn', async (test) => {
    const database = await postgres.newUrl()
    const balancer = await openBalancer()
    const services = [await startProcess({ database }), await startProcess({ database })]
    for (const [index, { url }] of services.entries()) balancer.use(index, url)
    await balancer.waitForReady(2)
    const history = newHistory()
    const urls = [balancer.url]
    const feeds = [0, 1].map((index) =>
      followFeed(() => services[index]?.url ?? balancer.url, token),
    )
    const loads = [
      startLoad(history, { urls, token, writers: 6, readers: 2, thinkMs }),
      startLoad(history, { urls, token, writers: 2, readers: 1, connections: 'new', thinkMs }),
    ]
    for (let restart = 0; restart < 2 * rounds; restart++) {
      const index = restart % 2
      assert.equal(await services[index]?.end('SIGTERM'), 0)
      const service = await startProcess({ database })
      services[index] = service
      balancer.use(index, service.url)
      await balancer.waitForReady(2)
    }
    await Promise.all(loads.map((load) => load.stop()))
    const state = await readFinalState(balancer.url, token, history)
    const verdict = judge(history, state)
    for (const feed of feeds) {
      await feed.waitFor(state.events.at(-1)?.position)
      assert.deepEqual(feed.events, state.events)
    }
    test.diagnostic(JSON.stringify({ ...countOutcomes(history), ...verdict }))
    assert.deepEqual(verdict, clean)
    assert.equal(countOutcomes(history).ok, history.attempts.length)
  })
})

describe('a service on SQLite that is restarted under load', () => {
  it('answers every request over an accepted connection, and loses nothing', async (test) => {
    const database = `sqlite:${join(newFolder(), 'plants.db')}`
    const port = await findFreePort()
    const notes = openNotes()
    const start = () => startProcess({ database, port, env: notes.env })
    let service = await start()
    const history = newHistory()
    const sent: Sent[] = []
    const urls = [service.url]
    const feed = followFeed(() => service.url, token)
    const loads = [
      startLoad(history, { urls, token, writers: 6, readers: 2, thinkMs, sent }),
      startLoad(history, {
        urls,
        token,
        writers: 2,
        readers: 1,
        connections: 'new',
        thinkMs,
        sent,
      }),
    ]
    for (let round = 0; round < rounds; round++) {
      await waitForWrites(history, scale(40, 100))
      assert.equal(await service.end('SIGTERM'), 0)
      service = await start()
    }
    await Promise.all(loads.map((load) => load.stop()))
    const account = toAccount(sent, notes.read())
    // A request over a connection that was never accepted must not be executed.
    for (const attempt of history.attempts)
      if (attempt.outcome === 'unknown') attempt.outcome = 'refused'
    const state = await readFinalState(service.url, token, history)
    const verdict = judge(history, state)
    await feed.waitFor(state.events.at(-1)?.position)
    assert.deepEqual(feed.events, state.events)
    test.diagnostic(JSON.stringify({ account, ...countOutcomes(history), ...verdict }))
    assert.deepEqual(verdict, clean)
    const { answered, refused, neverAccepted, ...wrong } = account
    assert.deepEqual(wrong, { unread: 0, dropped: 0, unnoted: 0 })
    // The system resets connections that still wait to be accepted when the port is closed.
    test.diagnostic(`${neverAccepted} connections were never accepted`)
    assert.ok(answered > 0 && refused > 0, 'the service was never away')
    // A port that is opened for a test and closed again would reset connections.
    const opened = notes.read().filter(({ what }) => what === 'listening')
    assert.equal(opened.length, rounds + 1)
  })
})
