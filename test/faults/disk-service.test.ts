import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { once } from 'node:events'
import {
  cpSync,
  existsSync,
  mkdtempSync,
  rmdirSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, describe, it } from 'node:test'
import { openConnection } from '../../src/store/sqlite/connection.ts'
import { start } from '../support/command.ts'
import { newFolder } from '../support/folder.ts'
import { call } from '../support/wire.ts'
import { recover } from './recovery.ts'
import { scale } from './scale.ts'
import { compileShim, type Fault, newQuickFolder } from './shim.ts'
import { type Attempt, judge, startWriters } from './writers.ts'

const token = 'a-token-for-the-fault-tests'
const authorized = { Authorization: `Bearer ${token}` }
const numbers = scale(1, 12)
const slowRunMs = scale(1_000, 20_000)
const syncMs = 20
const shim = compileShim()

const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms))

async function startService(path: string, env: Record<string, string>) {
  const service = start(['serve'], {
    folder: newFolder(),
    env: { PORT: '0', DATABASE_URL: `sqlite:${path}`, PLANT_STORE_TOKEN: token, ...env },
  })
  const [, url = ''] = await service.waitFor(/address {3}(http:\S+)/)
  return {
    url,
    async kill() {
      const exited = once(service.child, 'exit')
      service.child.kill('SIGKILL')
      await exited
    },
  }
}

/** Opens a copy of what the service left, and judges. */
async function judgeFolder(folder: string, attempts: readonly Attempt[]) {
  const copy = join(newQuickFolder(), 'copy')
  cpSync(folder, copy, { recursive: true })
  const { stored, damage } = await recover(join(copy, 'plants.db'))
  const count = (wanted: string) => attempts.filter(({ outcome }) => outcome === wanted).length
  const counts = { ok: count('ok'), refused: count('refused'), unknown: count('unknown') }
  return { verdict: { ...judge(attempts, stored), damage }, counts }
}

const nothingWrong = { lost: 0, invented: 0, wrong: 0, damage: undefined }

describe('a service whose disk fails', { skip: shim.skip }, () => {
  const kinds: Pick<Fault, 'kind' | 'error' | 'times'>[] = [
    { kind: 'write', error: 'EIO', times: 'once' },
    { kind: 'write', error: 'ENOSPC', times: 'on' },
    { kind: 'fsync', error: 'EIO', times: 'once' },
  ]
  for (const { kind, error, times } of kinds) {
    it(`keeps what it acknowledged, and reads: ${kind} ${error} ${times}`, async (test) => {
      for (let index = 1; index <= numbers; index++) {
        const folder = newQuickFolder()
        const path = join(folder, 'plants.db')
        const strikes = join(newQuickFolder(), 'strikes')
        openConnection(path).close()
        // The first ones belong to the start, with its proof that commits are synced.
        const fault: Fault = { kind, error, times, number: 20 * index + index, suffix: '-wal' }
        const service = await startService(path, shim.toEnv?.({ folder, fault, strikes }) ?? {})
        const writers = startWriters(service.url, token, 4)
        while (!existsSync(strikes) && writers.attempts.length < 5_000) await pause(5)
        const struckAt = writers.attempts.length
        while (writers.attempts.length < struckAt + 20) await pause(5)
        const read = await call(service.url, { path: '/plants?limit=5', headers: authorized })
        await writers.stop()
        await service.kill()
        const { verdict, counts } = await judgeFolder(folder, writers.attempts)
        test.diagnostic(JSON.stringify({ number: fault.number, ...counts }))
        assert.deepEqual(verdict, nothingWrong)
        assert.equal(read.status, 200)
        assert.ok(counts.ok > 0)
        assert.ok(counts.refused + counts.unknown > 0)
      }
    })
  }

  it('answers all and stays alive when each sync is slow', async (test) => {
    const folder = newQuickFolder()
    const path = join(folder, 'plants.db')
    const service = await startService(path, shim.toEnv?.({ folder, syncMs }) ?? {})
    const writers = startWriters(service.url, token, 16)
    const startedAt = performance.now()
    let longestMs = 0
    let looks = 0
    while (performance.now() - startedAt < slowRunMs) {
      const askedAt = performance.now()
      assert.equal((await call(service.url, { path: '/healthz' })).status, 200)
      longestMs = Math.max(longestMs, performance.now() - askedAt)
      looks++
    }
    await writers.stop()
    await service.kill()
    const { verdict, counts } = await judgeFolder(folder, writers.attempts)
    test.diagnostic(JSON.stringify({ ...counts, looks, longestMs: Math.round(longestMs) }))
    assert.deepEqual(verdict, nothingWrong)
    assert.deepEqual([counts.refused, counts.unknown], [0, 0])
    // Each commit took a slow sync: without the shim there would be far more of them.
    assert.ok(counts.ok <= 16 * Math.ceil((slowRunMs + 1_000) / syncMs))
    assert.ok(longestMs < 1_000, `${longestMs} ms`)
  })
})

/** Mounts a file system of this size, or says why that cannot be done. It is gone with the tests of this file. */
function mountSmallDisk(kibibytes: number): { folder: string; skip: false } | { skip: string } {
  const folder = mkdtempSync(join(tmpdir(), 'plant-store-test-'))
  const { error, status, stderr } = spawnSync(
    'mount',
    ['-t', 'tmpfs', '-o', `size=${kibibytes}k`, 'tmpfs', folder],
    { encoding: 'utf8' },
  )
  const isMounted = error === undefined && status === 0
  after(() => {
    if (isMounted) spawnSync('umount', [folder])
    rmdirSync(folder)
  })
  if (!isMounted) {
    return { skip: `cannot mount a small disk: ${error?.message ?? stderr.trim()}` }
  }
  return { folder, skip: false }
}

describe('a disk that is full', () => {
  const disk = mountSmallDisk(2_048)

  it('refuses creates with 507, reads on, and loses nothing', { skip: disk.skip }, async (test) => {
    if (disk.skip !== false) return
    const filler = join(disk.folder, 'filler')
    writeFileSync(filler, Buffer.alloc(512 * 1024))
    const service = await startService(join(disk.folder, 'plants.db'), {})
    const attempts: Attempt[] = []

    async function create(): Promise<number> {
      const id = 2n ** 53n + BigInt(attempts.length)
      const name = `plant ${id} ${'x'.repeat(2_000)}`
      const { status } = await call(service.url, {
        method: 'POST',
        path: '/plants',
        headers: { ...authorized, 'Content-Type': 'application/json' },
        body: `{"id":${id},"name":"${name}"}`,
      })
      const outcome = status === 200 ? 'ok' : status === 504 ? 'unknown' : 'refused'
      attempts.push({ id, name, outcome, sentAt: 0, answeredAt: 0 })
      return status
    }

    while ((await create()) === 200);
    const statuses = [await create(), await create()]
    const path = `/plants/${attempts[0]?.id}`
    const read = await call(service.url, { path, headers: authorized })
    rmSync(filler)
    const afterwards = await create()
    while ((await create()) === 200);
    await service.kill()
    const { verdict, counts } = await judgeFolder(disk.folder, attempts)
    test.diagnostic(
      JSON.stringify({ ...counts, log: statSync(join(disk.folder, 'plants.db-wal')).size }),
    )
    assert.deepEqual(verdict, nothingWrong)
    assert.deepEqual(statuses, [507, 507])
    assert.equal(read.status, 200)
    assert.equal(afterwards, 200)
    assert.ok(counts.ok > 20)
  })
})
