import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { PlantStore } from '../../client/index.ts'
import { type Position, type Store, toPlant } from '../../src/store/store.ts'
import { start } from '../support/command.ts'
import { type Engine, engines, sqlite } from '../support/engines.ts'
import { newFolder } from '../support/folder.ts'
import { releaseAfterTest } from '../support/release.ts'
import { waitUntil } from '../support/wait.ts'
import { keepState } from './lab/kept-state.ts'
import { scale } from './lab/scale.ts'
import { startProcess, token } from './lab/service-process.ts'

type Plants = Map<bigint, string>

/** Without a pause, the writers take most of the time of the short form. */
const thinkMs = scale(100, 0)

async function readPlants(store: Store): Promise<Plants> {
  const { plants } = await store.listPlants({ after: undefined, tag: undefined, limit: 10_000 })
  return new Map(plants.map(({ id, name }) => [id, name]))
}

/** The plants of the source as they were at a position: those it began with, and its journal. */
async function replay(source: Store, begun: Plants, upTo: Position): Promise<Plants | 'gone'> {
  const plants = new Map(begun)
  let after: Position | 'oldest' = 'oldest'
  for (;;) {
    const page = await source.readJournal(after, 1_000)
    assert.ok(typeof page !== 'string')
    if (page.begin === upTo) return plants
    for (const event of page.events) {
      const { id, name } = toPlant(event)
      if (event.type === 'plant.deleted') plants.delete(id)
      else plants.set(id, name)
      if (event.position === upTo) return plants
    }
    if (page.events.length === 0) return 'gone'
    after = page.end
  }
}

/** Writes to whatever service there is, until it is stopped. */
function startWriting(client: () => PlantStore) {
  let isStopped = false
  let count = 0
  async function write(): Promise<void> {
    while (!isStopped) {
      const id = BigInt(Math.floor(Math.random() * 300))
      const isDelete = Math.random() < 0.3
      const done = isDelete ? client().delete(id) : client().replace(id, { name: `${count++}` })
      await done.catch(() => sleep(10))
      await sleep(thinkMs)
    }
  }
  const writers = Promise.all([write(), write(), write()])
  const stop = async () => {
    isStopped = true
    await writers
  }
  releaseAfterTest(stop)
  return stop
}

for (const engine of engines) {
  describe(`a copy that follows, on ${engine.name}`, () => {
    it('is the source at its position after any kill -9 of either, and after a restore', async () => {
      await killBoth(engine, scale(engine === sqlite ? 6 : 4, 200))
    })
  })
}

async function killBoth(engine: Engine, kills: number): Promise<void> {
  const folder = newFolder()
  const database = await engine.newUrl()
  let service = await startProcess({ database })
  const { url } = service
  const port = Number(new URL(url).port)
  let source = await engine.open(database)
  let begun: Plants = new Map()
  const to = await engine.newUrl()
  const copy = await engine.open(to)
  const env = { PLANT_STORE_TOKEN: token }
  const startFollower = () => start(['follow', '--from', url, '--to', to], { folder, env })
  const client = new PlantStore({ url, token, retries: 0, timeoutMs: 2_000 })
  const stopWriting = startWriting(() => client)
  let follower = startFollower()
  const backupAt = 2 * Math.floor(kills / 6) + 1
  const restoreAt = 2 * Math.floor(kills / 3) + 1
  let goBack = async () => {}

  /** Ends the service, does something with the store that nobody uses, and starts it again. */
  async function restart(signal: NodeJS.Signals, between = async () => {}): Promise<void> {
    await service.end(signal)
    await source.close()
    await between()
    source = await engine.open(database)
    service = await startProcess({ database, port })
  }

  for (let kill = 0; kill < kills; kill++) {
    const before = (await copy.readFollowed())?.position
    if (kill === backupAt) {
      await restart('SIGTERM', async () => {
        goBack = await keepState(engine, database)
      })
    } else if (kill === restoreAt) {
      await restart('SIGKILL', async () => {
        await goBack()
        const restored = await engine.open(database)
        begun = await readPlants(restored)
        await restored.close()
      })
    } else if (kill % 2 === 1) await restart('SIGKILL')
    // Sometimes in the middle of a fill, sometimes while it follows.
    if (kill % 3 !== 0) {
      await waitUntil(async () => {
        const position = (await copy.readFollowed())?.position
        return position !== undefined && position !== before
      }, 'the copy goes on')
    }
    await sleep(Math.random() * 100)
    follower.child.kill('SIGKILL')
    await follower.ended
    await requireTrue(source, begun, copy)
    follower = startFollower()
  }

  await stopWriting()
  // The last follower has to run to get this one.
  await client.replace(1n, { name: 'last' })
  await waitUntil(
    async () => (await copy.readFollowed())?.position === (await source.journalEnd()),
    'the copy has every change',
  )
  assert.deepEqual(await readPlants(copy), await readPlants(source))
  follower.child.kill('SIGTERM')
  assert.equal((await follower.ended).exitCode, 0)
}

/** A copy that has no position, or one from before a restore, promises nothing yet. */
async function requireTrue(source: Store, begun: Plants, copy: Store): Promise<void> {
  const position = (await copy.readFollowed())?.position
  const found = await readPlants(copy)
  // The server of a copy may still commit what a killed process has sent.
  if ((await copy.readFollowed())?.position !== position) return requireTrue(source, begun, copy)
  if (position === undefined) return
  const life = (text: string) => text.slice(0, 12)
  if (life(position) !== life(await source.journalEnd())) return
  const expected = await replay(source, begun, position)
  const sorted = (plants: Plants) => [...plants].sort(([a], [b]) => (a < b ? -1 : 1))
  assert.ok(expected !== 'gone')
  assert.deepEqual(sorted(found), sorted(expected))
}
