import assert from 'node:assert/strict'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, it } from 'node:test'
import { buildRandom, seed } from './lab/random.ts'
import { layOut } from './lab/recovery.ts'
import { newQuickFolder } from './lab/shim.ts'
import type { Operation } from './lab/trace.ts'
import { buildVolatileDisk, type Cut } from './lab/volatile-disk.ts'

const root = '/disk'
const path = '/disk/file'
const folder = join(newQuickFolder(), 'disk')
const copy = join(folder, 'file')
const sector = (letter: string) => letter.repeat(512)

type Step = Partial<Operation> & Pick<Operation, 'kind'>

const create: Step = { kind: 'create' }
const sync: Step = { kind: 'sync' }
const failedSync: Step = { kind: 'failed sync' }
const syncFolder: Step = { kind: 'sync', path: root }
const write = (text: string, offset = 0): Step => ({
  kind: 'write',
  data: Buffer.from(text),
  offset,
})

/** All contents that the file has after many power cuts. */
function cutOften(steps: readonly Step[], cut: Cut): (string | undefined)[] {
  const disk = buildVolatileDisk(root)
  for (const step of steps) disk.apply({ path, offset: 0, data: Buffer.alloc(0), end: 0, ...step })
  const random = buildRandom(seed, 7)
  const contents = Array.from({ length: 200 }, () => {
    layOut(folder, root, disk.cutPower(cut, random))
    return existsSync(copy) ? readFileSync(copy, 'utf8') : undefined
  })
  return [...new Set(contents)].sort()
}

describe('the disk of the power cut tests', () => {
  it('keeps synced writes, whatever the cut', () => {
    const steps = [create, write('a'), sync, syncFolder]
    for (const cut of ['synced only', 'any sectors', 'any pages', 'torn write'] as const) {
      assert.deepEqual(cutOften(steps, cut), ['a'], cut)
    }
  })

  it('loses writes that were not synced', () => {
    const steps = [create, syncFolder, write('a'), sync, write('b', 1)]
    assert.deepEqual(cutOften(steps, 'synced only'), ['a'])
    assert.deepEqual(cutOften(steps, 'any pages'), ['a', 'ab'])
  })

  it('loses a file whose name was not synced', () => {
    const steps = [create, write('a'), sync]
    assert.deepEqual(cutOften(steps, 'synced only'), [undefined])
    assert.deepEqual(cutOften(steps, 'any pages'), ['a', undefined])
  })

  it('brings a file back whose deletion was not synced', () => {
    const steps = [create, write('a'), sync, syncFolder, { kind: 'unlink' } as const]
    assert.deepEqual(cutOften(steps, 'synced only'), ['a'])
    assert.deepEqual(cutOften(steps, 'any pages'), ['a', undefined])
    assert.deepEqual(cutOften([...steps, syncFolder], 'any pages'), [undefined])
  })

  it('keeps any sectors of a write, or tears it between two', () => {
    const old = sector('a') + sector('b')
    const steps = [create, syncFolder, write(old), sync, write(sector('c') + sector('d'))]
    const [ab, ad, cb, cd] = ['ab', 'ad', 'cb', 'cd'].map((letters) =>
      [...letters].map(sector).join(''),
    )
    assert.deepEqual(cutOften(steps, 'any sectors'), [ab, ad, cb, cd])
    assert.deepEqual(cutOften(steps, 'torn write'), [ab, cb, cd])
  })

  it('does not repair a failed sync with a later one', () => {
    const steps = [create, syncFolder, write('a'), sync, write('b'), failedSync, sync]
    assert.deepEqual(cutOften(steps, 'synced only'), ['a'])
    assert.deepEqual(cutOften(steps, 'any pages'), ['a', 'b'])
    const again = [...steps, write('c', 1), sync]
    assert.deepEqual(cutOften(again, 'any pages'), ['bc'])
  })
})
