import assert from 'node:assert/strict'
import { join } from 'node:path'
import { describe, it } from 'node:test'
import { engines } from '../support/engines.ts'
import { newFolder } from '../support/folder.ts'
import { findFreePort } from '../support/postgres.ts'
import { openNotes, toAccount } from './accepted.ts'
import { openBalancer } from './balancer.ts'
import { clean, judge } from './checker.ts'
import { readFinalState } from './final-state.ts'
import { countOutcomes, newHistory, waitForWrites } from './history.ts'
import { startLoad } from './load.ts'
import type { Sent } from './notes.ts'
import { scale } from './scale.ts'
import { startProcess, token } from './service-process.ts'

const rounds = scale(1, 20)
const postgresql = engines.find(({ name }) => name === 'PostgreSQL') as (typeof engines)[number]

describe('two services on PostgreSQL behind a balancer', () => {
  it('answer every request while they are restarted one after the other', async (test) => {
    const database = await postgresql.newUrl()
    const balancer = await openBalancer()
    const services = [await startProcess({ database }), await startProcess({ database })]
    for (const [place, { url }] of services.entries()) balancer.use(place, url)
    await balancer.waitForReady(2)
    const history = newHistory()
    const urls = [balancer.url]
    const loads = [
      startLoad(history, { urls, token, writers: 6, readers: 2 }),
      startLoad(history, { urls, token, writers: 2, readers: 1, connections: 'new' }),
    ]
    for (let restart = 0; restart < 2 * rounds; restart++) {
      const place = restart % 2
      assert.equal(await services[place]?.end('SIGTERM'), 0)
      const service = await startProcess({ database })
      services[place] = service
      balancer.use(place, service.url)
      await balancer.waitForReady(2)
    }
    await Promise.all(loads.map((load) => load.stop()))
    const verdict = judge(history, await readFinalState(balancer.url, token, history))
    test.diagnostic(JSON.stringify({ ...countOutcomes(history), ...verdict }))
    assert.deepEqual(verdict, clean)
    assert.equal(countOutcomes(history).ok, history.attempts.length)
  })
})

describe('a service on SQLite that is restarted under load', () => {
  it('answers every request on a connection that it took, and loses nothing', async (test) => {
    const database = `sqlite:${join(newFolder(), 'plants.db')}`
    const port = await findFreePort()
    const notes = openNotes()
    const start = () => startProcess({ database, port, env: notes.env })
    let service = await start()
    const history = newHistory()
    const sent: Sent[] = []
    const urls = [service.url]
    const loads = [
      startLoad(history, { urls, token, writers: 6, readers: 2, sent }),
      startLoad(history, { urls, token, writers: 2, readers: 1, connections: 'new', sent }),
    ]
    for (let round = 0; round < rounds; round++) {
      await waitForWrites(history, 100)
      assert.equal(await service.end('SIGTERM'), 0)
      service = await start()
    }
    await Promise.all(loads.map((load) => load.stop()))
    const account = toAccount(sent, notes.read())
    // Of a connection that nobody took, nobody has read a request: it must not have been done.
    for (const attempt of history.attempts)
      if (attempt.outcome === 'unknown') attempt.outcome = 'refused'
    const verdict = judge(history, await readFinalState(service.url, token, history))
    test.diagnostic(JSON.stringify({ account, ...countOutcomes(history), ...verdict }))
    assert.deepEqual(verdict, clean)
    const { answered, refused, neverTaken, ...wrong } = account
    assert.deepEqual(wrong, { unread: 0, dropped: 0, unnoted: 0 })
    // Who connects in the very moment in which the port is closed is not taken.
    const rare = Math.ceil(rounds / 10)
    assert.ok(neverTaken <= rare, `${neverTaken} connections were reset before they were taken`)
    assert.ok(answered > 0 && refused > 0, 'it was never away')
    // Who is let in before the service serves is reset when that port is closed again.
    const opened = notes.read().filter(({ what }) => what === 'listening')
    assert.equal(opened.length, rounds + 1)
  })
})
