import assert from 'node:assert/strict'
import { copyFileSync, mkdirSync, readFileSync } from 'node:fs'
import { join, relative } from 'node:path'
import { describe, it } from 'node:test'
import { oldFile, oldStores } from '../store/old-stores.ts'
import { runProcess } from '../support/command.ts'
import { buildRandom, seed } from './lab/random.ts'
import { layOut, recover } from './lab/recovery.ts'
import { isLong, scale } from './lab/scale.ts'
import { compileShim, newQuickFolder } from './lab/shim.ts'
import { readTrace } from './lab/trace.ts'
import { buildVolatileDisk, cuts } from './lab/volatile-disk.ts'

const shim = compileShim()

describe('an upgrade from release 1.0.0', { skip: shim.skip }, () => {
  it('leaves a store that opens with every plant, wherever the power is cut', async (test) => {
    const { expected } = oldStores[0] as (typeof oldStores)[number]
    const root = newQuickFolder()
    const path = join(root, 'data', 'plants.db')
    mkdirSync(join(root, 'data'))
    copyFileSync(oldFile, path)
    const trace = join(newQuickFolder(), 'trace')
    const listed = await runProcess(['token', 'list'], {
      folder: newQuickFolder(),
      env: { DATABASE_URL: `sqlite:${path}`, ...shim.toEnv?.({ folder: root, trace }) },
    })
    assert.equal(listed.exitCode, 0, listed.stderr)

    const operations = readTrace(trace)
    const disk = buildVolatileDisk(root)
    const old = { path: join(root, 'data'), offset: 0, data: Buffer.alloc(0), end: 0 }
    disk.apply({ ...old, kind: 'make folder' })
    disk.apply({ ...old, kind: 'create', path })
    disk.apply({ ...old, kind: 'write', path, data: readFileSync(oldFile) })
    for (const synced of [path, join(root, 'data'), root]) {
      disk.apply({ ...old, kind: 'sync', path: synced })
    }
    const folder = join(newQuickFolder(), 'disk')
    const copy = join(folder, relative(root, path))
    const random = buildRandom(seed, 1)
    let points = 0
    for (const operation of operations) {
      disk.apply(operation)
      for (let round = 0; round < scale(1, 20); round++) {
        for (const cut of isLong ? cuts : [random.pick(cuts)]) {
          layOut(folder, root, disk.cutPower(cut, random))
          const { stored, damage } = await recover(copy, 'since an upgrade')
          const at = `FAULTS_SEED=${seed}: ${operation.kind} of ${operation.path}, ${cut}`
          assert.equal(damage, undefined, at)
          const wanted = expected.plants.map(({ id, name }) => [BigInt(id), name] as const)
          assert.deepEqual(stored, new Map(wanted.toSorted(([a], [b]) => (a < b ? -1 : 1))), at)
          points++
        }
      }
    }
    const isMigrated = operations.some(({ kind }) => kind === 'sync')
    assert.ok(isMigrated && points > 20, `${points} points`)
    test.diagnostic(JSON.stringify({ points, operations: operations.length, seed }))
  })
})
