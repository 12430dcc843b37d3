import assert from 'node:assert/strict'
import { connect, createServer, type Socket } from 'node:net'
import { DatabaseSync } from 'node:sqlite'
import { it } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { engines, postgres } from '../support/engines.ts'
import { listen } from '../support/listen.ts'
import { releaseAfterTest } from '../support/release.ts'
import { waitUntil } from '../support/wait.ts'
import { call } from '../support/wire.ts'
import { countOutcomes } from './lab/history.ts'
import { startLoad } from './lab/load.ts'
import { scale } from './lab/scale.ts'
import { token } from './lab/service-process.ts'
import { openTrial } from './lab/trial.ts'

/** A kill comes after some writes and a part of the time of a commit, to hit every moment. */
const maxWrites = scale(40, 80)
const maxDelayMs = 10
const rounds = scale(1, 20)
const thinkMs = scale(50, 0)

for (const engine of engines) {
  const cycles = engine.name === 'SQLite' ? scale(4, 1_000) : scale(1, 50)
  it(`a service on ${engine.name} that is killed ${cycles} times loses and invents nothing`, async (test) => {
    const database = await engine.newUrl()
    const clients = { writers: 8, thinkMs: 0 }
    const trial = await openTrial({ database, clients, leases: 'short' })
    const { history } = trial
    for (let cycle = 0; cycle < cycles; cycle++) {
      await trial.writes(Math.ceil(Math.random() * maxWrites))
      await sleep(Math.random() * maxDelayMs)
      // Every fourth end is one in good order, also under load.
      await trial.restart(0, cycle % 4 === 3 ? 'SIGTERM' : 'SIGKILL')
    }
    // Sends the keyed creates again that got no answer.
    await waitUntil(() => history.unfinished.length === 0, 'all keyed creates are answered')
    await trial.writes(maxWrites)
    await trial.requireClean(test)
    const { ok, unknown } = countOutcomes(history)
    assert.ok(ok > 10 * cycles, `${ok} acknowledged`)
    assert.ok(unknown >= cycles / 2, `${unknown} without an answer: no kill hit the load`)
    if (engine.name !== 'SQLite') return
    await trial.services[0]?.end('SIGKILL')
    using db = new DatabaseSync(database.replace('sqlite:', ''))
    assert.deepEqual({ ...db.prepare('PRAGMA integrity_check').get() }, { integrity_check: 'ok' })
  })
}

it('two services behind a balancer answer every request while they are restarted in turn', async (test) => {
  const trial = await openTrial({
    ...{ database: await postgres.newUrl(), services: 2, clients: { thinkMs }, grace: 'long' },
  })
  const { services, history, urls } = trial
  const balancer = await openBalancer()
  for (const [index, { url }] of services.entries()) balancer.use(index, url)
  await balancer.waitForReady(2)
  urls.splice(0, 2, balancer.url)
  const clients = { writers: 2, readers: 1, connections: 'new', thinkMs } as const
  const others = startLoad(history, { urls, token, ...clients })
  for (let restart = 0; restart < 2 * rounds; restart++) {
    const index = restart % 2
    await trial.writes(10)
    await trial.suffer(async () => {
      assert.equal(await services[index]?.end('SIGTERM'), 0)
      await trial.replace(index)
    })
    balancer.use(index, services[index]?.url ?? '')
    await balancer.waitForReady(2)
  }
  await others.stop()
  await trial.requireClean(test)
  assert.equal(countOutcomes(history).ok, history.attempts.length)
})

for (const engine of engines) {
  const count = engine.name === 'SQLite' ? 2 : 3
  it(`${count} services on ${engine.name} send followers each change once, though one is killed`, async (test) => {
    const database = await engine.newUrl()
    const clients = { writers: 12, readers: 1, thinkMs: 0 }
    const trial = await openTrial({ database, services: count + 1, clients })
    await trial.writes(scale(40, 10_000))
    await trial.suffer(async () => {
      await trial.services.at(-1)?.end('SIGKILL')
      trial.services.pop()
      trial.urls.pop()
    })
    // These have to catch up with what is there, while more comes.
    for (const index of trial.services.keys()) void trial.follow(index)
    await trial.writes(scale(40, 10_000))
    await trial.requireClean(test)
  })
}

const checkMs = 50

/** A load balancer: sends each new connection to a service that is ready by its `/readyz`. */
async function openBalancer() {
  const backends: { url: string; isReady: boolean }[] = []
  const sockets = new Set<Socket>()
  let connections = 0

  const server = createServer((client) => {
    const ready = backends.filter(({ isReady }) => isReady)
    const { port } = new URL(ready[connections++ % ready.length]?.url ?? 'http://127.0.0.1:1')
    const upstream = connect(Number(port), '127.0.0.1')
    for (const [socket, other] of [
      [client, upstream],
      [upstream, client],
    ] as const) {
      sockets.add(socket)
      socket.on('error', () => other.destroy())
      socket.on('close', () => sockets.delete(socket))
      socket.pipe(other)
    }
  })
  const url = await listen(server)

  async function check(backend: (typeof backends)[number]): Promise<void> {
    const answer = await call(backend.url, { path: '/readyz' }).catch(() => undefined)
    backend.isReady = answer?.status === 200
  }
  const checking = setInterval(() => Promise.all(backends.map(check)), checkMs)

  releaseAfterTest(() => {
    clearInterval(checking)
    for (const socket of sockets) socket.destroy()
  })
  const countReady = () => backends.filter(({ isReady }) => isReady).length
  return {
    url,
    /** Sets or replaces the service with this index. */
    use(index: number, url: string): void {
      backends[index] = { url, isReady: false }
    },
    /** Resolves when this many services are ready. */
    waitForReady: (count: number) =>
      waitUntil(() => countReady() >= count, `${count} services are ready`),
  }
}
