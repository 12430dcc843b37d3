import assert from 'node:assert/strict'
import { cpSync, existsSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, it } from 'node:test'
import { openConnection } from '../../src/store/sqlite/connection.ts'
import { mountSmallDisk } from '../support/small-disk.ts'
import { waitUntil } from '../support/wait.ts'
import { call } from '../support/wire.ts'
import { recover } from './lab/recovery.ts'
import { scale } from './lab/scale.ts'
import { startProcess, token } from './lab/service-process.ts'
import { compileShim, type Fault, newQuickFolder } from './lab/shim.ts'
import { type Attempt, judge, startWriters } from './lab/writers.ts'

const authorized = { Authorization: `Bearer ${token}` }
const numbers = scale(1, 12)
const slowWrites = scale(100, 16_000)
const syncMs = 20
const shim = compileShim()
const disk = mountSmallDisk(2_048)

/** Opens a copy of the files that the service left, and judges. */
async function judgeFolder(folder: string, attempts: readonly Attempt[]) {
  const copy = join(newQuickFolder(), 'copy')
  cpSync(folder, copy, { recursive: true })
  const { stored, damage } = await recover(join(copy, 'plants.db'))
  const count = (wanted: string) => attempts.filter(({ outcome }) => outcome === wanted).length
  const counts = { ok: count('ok'), refused: count('refused'), unknown: count('unknown') }
  return { verdict: { ...judge(attempts, stored), damage }, counts }
}

const noMistakes = { lost: 0, invented: 0, wrong: 0, damage: undefined }

describe('a service whose disk fails', { skip: shim.skip }, () => {
  const kinds: Pick<Fault, 'kind' | 'error' | 'times'>[] = [
    { kind: 'write', error: 'EIO', times: 'once' },
    { kind: 'write', error: 'ENOSPC', times: 'on' },
    { kind: 'fsync', error: 'EIO', times: 'once' },
  ]
  for (const { kind, error, times } of kinds) {
    it(`keeps acknowledged plants, and reads: ${kind} ${error} ${times}`, async (test) => {
      for (let index = 1; index <= numbers; index++) {
        const folder = newQuickFolder()
        const path = join(folder, 'plants.db')
        const strikes = join(newQuickFolder(), 'strikes')
        openConnection(path).close()
        // The first operations belong to the start, which checks that commits are synced.
        const fault: Fault = { kind, error, times, number: 20 * index + index, suffix: '-wal' }
        const env = shim.toEnv?.({ folder, fault, strikes }) ?? {}
        const service = await startProcess({ database: `sqlite:${path}`, env })
        const writers = startWriters(service.url, token, 4)
        await waitUntil(() => existsSync(strikes), 'the fault strikes')
        const later = writers.attempts.length + 20
        await waitUntil(() => writers.attempts.length >= later, 'the service goes on')
        const read = await call(service.url, { path: '/plants?limit=5', headers: authorized })
        await writers.stop()
        await service.end('SIGKILL')
        const { verdict, counts } = await judgeFolder(folder, writers.attempts)
        test.diagnostic(JSON.stringify({ number: fault.number, ...counts }))
        assert.deepEqual(verdict, noMistakes)
        assert.equal(read.status, 200)
        assert.ok(counts.ok > 0)
        assert.ok(counts.refused + counts.unknown > 0)
      }
    })
  }

  it('answers every request when each sync is slow', async (test) => {
    const folder = newQuickFolder()
    const path = join(folder, 'plants.db')
    const env = shim.toEnv?.({ folder, syncMs }) ?? {}
    const service = await startProcess({ database: `sqlite:${path}`, env })
    const writers = startWriters(service.url, token, 16)
    const startedAt = performance.now()
    let longestMs = 0
    await waitUntil(async () => {
      const sentAt = performance.now()
      assert.equal((await call(service.url, { path: '/healthz' })).status, 200)
      longestMs = Math.max(longestMs, performance.now() - sentAt)
      return writers.count('ok') >= slowWrites
    }, `${slowWrites} writes are acknowledged`)
    await writers.stop()
    const elapsedMs = performance.now() - startedAt
    await service.end('SIGKILL')
    const { verdict, counts } = await judgeFolder(folder, writers.attempts)
    test.diagnostic(JSON.stringify({ ...counts, longestMs: Math.round(longestMs) }))
    assert.deepEqual(verdict, noMistakes)
    assert.deepEqual([counts.refused, counts.unknown], [0, 0])
    // Each commit took a slow sync: without the shim there would be far more of them.
    assert.ok(counts.ok <= 16 * Math.ceil(elapsedMs / syncMs))
  })
})

describe('a disk that is full', { skip: disk.skip }, () => {
  it('makes the service refuse creates with 507 and go on reading', async (test) => {
    const filler = join(disk.folder, 'filler')
    writeFileSync(filler, Buffer.alloc(512 * 1024))
    const service = await startProcess({ database: `sqlite:${join(disk.folder, 'plants.db')}` })
    const attempts: Attempt[] = []

    async function create(): Promise<number> {
      const id = 2n ** 53n + BigInt(attempts.length)
      const name = `plant ${id} ${'x'.repeat(8_000)}`
      const { status } = await call(service.url, {
        method: 'POST',
        path: '/plants',
        headers: { ...authorized, 'Content-Type': 'application/json' },
        body: `{"id":${id},"name":"${name}"}`,
      })
      const outcome = status === 200 ? 'ok' : status === 504 ? 'unknown' : 'refused'
      attempts.push({ id, name, outcome })
      return status
    }

    while ((await create()) === 200);
    const statuses = [await create(), await create()]
    const path = `/plants/${attempts[0]?.id}`
    const read = await call(service.url, { path, headers: authorized })
    rmSync(filler)
    const afterwards = await create()
    while ((await create()) === 200);
    await service.end('SIGKILL')
    const { verdict, counts } = await judgeFolder(disk.folder, attempts)
    test.diagnostic(
      JSON.stringify({ ...counts, log: statSync(join(disk.folder, 'plants.db-wal')).size }),
    )
    assert.deepEqual(verdict, noMistakes)
    assert.deepEqual(statuses, [507, 507])
    assert.equal(read.status, 200)
    assert.equal(afterwards, 200)
    assert.ok(counts.ok > 20)
  })
})
