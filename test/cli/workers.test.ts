import assert from 'node:assert/strict'
import { once } from 'node:events'
import type { Socket } from 'node:net'
import { before, describe, it } from 'node:test'
import { preload, start } from '../support/command.ts'
import { postgres } from '../support/engines.ts'
import { newFolder } from '../support/folder.ts'
import { parseMetrics } from '../support/metrics.ts'
import { password } from '../support/postgres.ts'
import { childrenOf } from '../support/processes.ts'
import { waitUntil } from '../support/wait.ts'
import { call, openSocket, toBytes } from '../support/wire.ts'
import { ends, endsWith } from './ends.ts'

/** Starts a service with two workers on a new store. */
async function launch(settings: Record<string, string> = {}) {
  const env = { PORT: '0', DATABASE_URL: await postgres.newUrl(), ...settings }
  return { ...start(['serve', '--workers', '2'], { folder: newFolder(), env }), env }
}

/** The same, once it listens. */
async function startWorkers() {
  const service = await launch()
  const [, url = ''] = await service.waitFor(/address {3}(http:\S+)/)
  const [, token = ''] = await service.waitFor(/token {5}(plst_\w{36})/)
  const headers = { Authorization: `Bearer ${token}`, 'Content-Type': 'application/json' }
  const create = (id: number) =>
    call(url, { method: 'POST', path: '/plants', headers, body: `{"id":${id},"name":"x"}` })
  return { ...service, url, headers, create }
}

/** What two workers say that have drained. */
const twoAnswered = /^(?!(?:.*every accepted){3})(?:.*every accepted request was answered){2}/s

describe('plant-store serve --workers', () => {
  // One after the other on one service, which the last one ends.
  describe('that runs', () => {
    let service: Awaited<ReturnType<typeof startWorkers>>
    let metrics: Record<string, string>
    before(async () => {
      service = await startWorkers()
      const options = { folder: newFolder(), env: service.env }
      const line = 'token create --name prometheus --scope metrics:read'
      metrics = { Authorization: `Bearer ${(await ends(line, 0, /./, options)).trim()}` }
    })

    async function scrape() {
      const { body } = await call(service.url, { path: '/metrics', headers: metrics })
      const samples = parseMetrics(body)
      const labels = '{operation="createPlant",status="200",error="none"}'
      return {
        creates: samples.get(`plant_store_http_requests_total${labels}`) ?? 0,
        processes: samples.get('plant_store_processes'),
      }
    }

    it('serves one port with several processes, and prints one token and no password', async () => {
      const { create, output, url } = service
      const processes = new Set<string | undefined>()
      let id = 1_000
      // The system may give one of them all connections for a while.
      await waitUntil(async () => {
        const answers = await Promise.all(Array.from({ length: 20 }, () => create(id++)))
        for (const { status, headers } of answers) {
          assert.equal(status, 200)
          processes.add(headers.get('x-request-id')?.split('-').slice(0, -1).join('-'))
        }
        return processes.size === 2
      }, 'both processes have answered')
      assert.equal(new Set(output.stdout.match(/plst_\w+/g)).size, 1)
      assert.match(output.stdout, /workers {3}2/)
      assert.match(output.stdout, /store {5}postgres:\/\/plants@127\.0\.0\.1/)
      assert.equal(output.stdout.includes(encodeURIComponent(password)), false)
      assert.match(url, /:\d+$/)
    })

    it('starts another worker when one dies, and the metrics of all never fall', async () => {
      const { create, waitFor, child } = service
      const { creates: earlier } = await scrape()
      await Promise.all(Array.from({ length: 40 }, (_, id) => create(id)))
      const expected = { creates: earlier + 40, processes: 2 }
      for (let count = 0; count < 4; count++) assert.deepEqual(await scrape(), expected)
      process.kill(Number(childrenOf(Number(child.pid))[0]), 'SIGKILL')
      await waitFor(/a worker died: starting another/)
      await waitUntil(async () => (await scrape()).processes === 2, 'the other worker has started')
      assert.deepEqual(await scrape(), expected)
    })

    it('continues when a worker dies while others ask for metrics', async () => {
      const { create, waitFor, url, child, output } = service
      // The primary process hands out connections, so they are opened before it is halted.
      const sockets = Array.from({ length: 12 }, () => openSocket(url))
      const ask = (some: readonly Socket[], path: string) =>
        Promise.all(
          some.map(async (socket) => {
            socket.write(toBytes({ path, headers: metrics }))
            await once(socket, 'data')
          }),
        )
      await ask(sockets, '/metrics')
      child.kill('SIGSTOP')
      // When it continues, it finds the questions before it learns of the death.
      ask(sockets.slice(6), '/metrics').catch(() => {})
      await ask(sockets.slice(0, 6), '/plants')
      process.kill(Number(childrenOf(Number(child.pid))[0]), 'SIGKILL')
      child.kill('SIGCONT')
      await waitFor(/(a worker died: starting another.*){2}/s)
      assert.equal((await create(100)).status, 200)
      await waitUntil(async () => (await scrape()).processes === 2, 'there are two again')
      assert.doesNotMatch(output.stderr, /EPIPE/)
    })

    it('drains every worker on SIGTERM and ends with 0', async () => {
      const { create, child, ended } = service
      const answers = Promise.all(Array.from({ length: 50 }, (_, id) => create(200 + id)))
      await create(300)
      child.kill('SIGTERM')
      assert.ok((await answers).every(({ status }) => status === 200))
      await endsWith(ended, 0, twoAnswered)
    })
  })

  it('prints its address and token even if a worker dies before it listens', async () => {
    const service = await launch()
    let worker: number | undefined
    while (worker === undefined) worker = childrenOf(Number(service.child.pid))[0]
    process.kill(worker, 'SIGKILL')
    await service.waitFor(/token {5}plst_/)
    service.child.kill('SIGTERM')
    await endsWith(service.ended, 0, /./)
  })

  it('pauses before it replaces a worker that died at its start', async () => {
    const dying = "import cluster from 'node:cluster'; if (cluster.isWorker) process.exit(9)"
    const service = await launch({ NODE_OPTIONS: preload(dying) })
    await service.waitFor(/(a worker died.*){4}/s)
    const times = service.output.stderr
      .split('\n')
      .filter((line) => line.includes('a worker died'))
      .map((line) => JSON.parse(line).time)
    assert.ok(times[2] - times[0] >= 1_000, `restarted after ${times[2] - times[0]} ms`)
    service.child.kill('SIGTERM')
    await endsWith(service.ended, 0, /./)
  })

  it('drains workers that got the signal earlier than the primary process', async () => {
    const { child, ended, waitFor, url, headers } = await startWorkers()
    const body = '{"id":1,"name":"x"}'
    const bytes = toBytes({ method: 'POST', path: '/plants', headers, body })
    const socket = openSocket(url)
    socket.write(toBytes({ path: '/healthz' }))
    await once(socket, 'data')
    socket.write(bytes.subarray(0, -1))
    // A terminal and systemd signal all processes of a service, and a busy one is late.
    child.kill('SIGSTOP')
    for (const worker of childrenOf(Number(child.pid))) process.kill(worker, 'SIGTERM')
    await waitFor(/(finishing accepted requests.*){2}/s)
    const signalledAt = performance.now()
    await waitUntil(() => performance.now() > signalledAt + 200, 'another signal is a second one')
    child.kill('SIGTERM')
    child.kill('SIGCONT')
    await waitFor(/(finishing accepted requests.*){3}/s)
    socket.write(bytes.subarray(-1))
    assert.match(String(await once(socket, 'data')), /^HTTP\/1\.1 200 /)
    await endsWith(ended, 0, twoAnswered)
  })

  it('is refused on SQLite, by the name of the variable', async () => {
    const said = /^WORKERS above 1 needs PostgreSQL, because SQLite lets only one [^\n]*\n$/
    await ends('serve', 78, said, { folder: newFolder(), env: { WORKERS: '2' } })
  })
})
