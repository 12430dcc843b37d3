import assert from 'node:assert/strict'
import { join } from 'node:path'
import { describe, it } from 'node:test'
import { PlantStore } from '../../client/plant-store.ts'
import { readSize } from '../../src/store/sqlite/file.ts'
import { startProcess, token } from '../faults/lab/service-process.ts'
import { runProcess } from '../support/command.ts'
import { newFolder } from '../support/folder.ts'
import { configure, end, litestreamMissing, replicate, restore } from './litestream.ts'

const creates = 20_000
const clients = 32
/** What docs/running.md promises: changes older than this are in the replica. */
const lagMs = 3_000
const maxLogBytes = 64 * 1024 * 1024

/** Creates plants until `isEnough`, and notes when each was acknowledged. */
async function createUntil(url: string, isEnough: (acknowledged: number) => boolean) {
  const store = new PlantStore({ url, token, retries: 0 })
  const acknowledged = new Map<bigint, number>()
  let next = 0n
  const work = async () => {
    while (!isEnough(acknowledged.size)) {
      const id = next++
      await store.create({ id, name: `plant ${id}`, tag: `tag ${id % 7n}` })
      acknowledged.set(id, performance.now())
    }
  }
  await Promise.all(Array.from({ length: clients }, work))
  return { acknowledged, sent: next }
}

async function readIds(url: string, asToken = token): Promise<Set<bigint>> {
  const ids = new Set<bigint>()
  const store = new PlantStore({ url, token: asToken })
  for await (const { id, name } of store.list({ pageSize: 1_000 })) {
    assert.equal(name, `plant ${id}`)
    ids.add(id)
  }
  return ids
}

/** Runs a command on a store. */
async function use(database: string, ...args: string[]): Promise<string> {
  const all = [...args, '--database', database]
  const { exitCode, stdout, stderr } = await runProcess(all, { folder: newFolder() })
  assert.equal(exitCode, 0, `${args.join(' ')}: ${stdout}${stderr}`)
  return stdout
}

describe('a store beside Litestream', { skip: litestreamMissing }, () => {
  it('is restored with all that is older than 3 s when both are killed, and with all when both are stopped', async (test) => {
    const path = join(newFolder(), 'plants.db')
    const database = `sqlite:${path}`
    const service = await startProcess({ database })
    const issued = JSON.parse(await use(database, 'token', 'create', '--name', 'x', '--json'))
    const config = configure(path)
    const first = await replicate(config)

    let maxLog = 0
    let longEnoughAt = Number.POSITIVE_INFINITY
    const { acknowledged, sent } = await createUntil(service.url, (count) => {
      maxLog = Math.max(maxLog, readSize(`${path}-wal`))
      // Then it continues for as long as the replica may be behind, and longer.
      if (count >= creates) longEnoughAt = Math.min(longEnoughAt, performance.now() + 2 * lagMs)
      return performance.now() > longEnoughAt
    })
    const killedAt = performance.now()
    await Promise.all([end(first, 'SIGKILL'), service.end('SIGKILL')])
    const early = [...acknowledged].filter(([, at]) => at < killedAt - lagMs).map(([id]) => id)
    assert.ok(early.length >= creates)

    // Another machine.
    const replica = join(newFolder(), 'replica.db')
    restore(config, path, replica)
    const copy = join(newFolder(), 'copy.db')
    await use(`sqlite:${copy}`, 'restore', replica)
    const standby = await startProcess({ database: `sqlite:${copy}` })
    const restored = await readIds(standby.url, issued.token)
    const lost = early.filter((id) => !restored.has(id))
    test.diagnostic(
      JSON.stringify({
        acknowledged: acknowledged.size,
        early: early.length,
        lostOfEarly: lost.length,
        lostInAll: [...acknowledged.keys()].filter((id) => !restored.has(id)).length,
        maxLogMiB: Math.round(maxLog / 1024 ** 2),
      }),
    )
    assert.deepEqual(lost, [])
    for (const id of restored) assert.ok(id < sent, `${id} was never sent`)
    assert.ok(maxLog < maxLogBytes, `the log had ${maxLog} bytes`)
    const written = new PlantStore({ url: standby.url, token: issued.token })
    await written.create({ id: -1n, name: 'plant -1' })
    await use(`sqlite:${copy}`, 'check')

    // The same machine: a restart on the file that Litestream has touched.
    const again = await startProcess({ database })
    const kept = await readIds(again.url)
    for (const id of acknowledged.keys()) assert.ok(kept.has(id), `${id} is lost`)
    const second = await replicate(config)
    await use(database, 'check')
    await use(database, 'backup', 'backup.db')
    await use(database, 'token', 'revoke', issued.id)
    // To move to another machine: nothing is lost, not even the last change.
    await again.end('SIGTERM')
    await end(second, 'SIGTERM')
    const last = join(newFolder(), 'last.db')
    restore(config, path, last)
    const there = await startProcess({ database: `sqlite:${last}` })
    assert.deepEqual(await readIds(there.url), kept)
    await assert.rejects(readIds(there.url, issued.token), { error: 40101 })
  })
})
