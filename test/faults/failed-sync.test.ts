import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { join } from 'node:path'
import { describe, it } from 'node:test'
import { fileURLToPath } from 'node:url'
import { programEnv } from '../support/child.ts'
import { newFolder } from '../support/folder.ts'
import { buildRandom, seed } from './lab/random.ts'
import { layOut, recover } from './lab/recovery.ts'
import { compileShim, newQuickFolder } from './lab/shim.ts'
import { readTrace } from './lab/trace.ts'
import { buildVolatileDisk } from './lab/volatile-disk.ts'

const shim = compileShim()
const writer = fileURLToPath(new URL('lab/take-writer.ts', import.meta.url))

describe('a failed sync after a take of webhooks', { skip: shim.skip }, () => {
  it('costs no plant that is acknowledged later', async () => {
    const root = newQuickFolder()
    const trace = join(newFolder(), 'trace')
    const { stdout, stderr } = spawnSync(process.execPath, [writer, join(root, 'plants.db')], {
      env: { ...programEnv, ...shim.toEnv?.({ folder: root, trace }) },
      encoding: 'utf8',
    })
    assert.equal(stdout, '2\n3\n4\n5\n', stderr)
    const disk = buildVolatileDisk(root)
    for (const operation of readTrace(trace)) disk.apply(operation)
    const folder = join(newQuickFolder(), 'disk')
    layOut(folder, root, disk.cutPower('synced only', buildRandom(seed, 1)))
    const { stored, damage } = await recover(join(folder, 'plants.db'))
    assert.equal(damage, undefined)
    assert.deepEqual([...stored.keys()].sort(), [2n, 3n, 4n, 5n])
  })
})
