import assert from 'node:assert/strict'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { it } from 'node:test'
import { buildRandom, seed } from './lab/random.ts'
import { layOut } from './lab/recovery.ts'
import { newQuickFolder } from './lab/shim.ts'
import type { Operation } from './lab/trace.ts'
import { buildVolatileDisk, type Cut, cuts } from './lab/volatile-disk.ts'

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

const base = [create, syncFolder, write('a'), sync]
const old = sector('a') + sector('b')
const [ab, ad, cb, cd] = ['ab', 'ad', 'cb', 'cd'].map((letters) =>
  [...letters].map(sector).join(''),
) as [string, string, string, string]
const rewritten = [create, syncFolder, write(old), sync, write(sector('c') + sector('d'))]
const failed = [...base, write('b'), failedSync, sync]
const unlinked = [create, write('a'), sync, syncFolder, { kind: 'unlink' } as const]

/** Steps, a kind of power cut, and all contents that the file may have then. */
type Case = [title: string, steps: readonly Step[], cut: Cut, found: (string | undefined)[]]
const cases: readonly Case[] = [
  ...cuts.map((cut): Case => ['keeps synced writes', base, cut, ['a']]),
  ['loses writes that were not synced', [...base, write('b', 1)], 'synced only', ['a']],
  ['may keep writes that were not synced', [...base, write('b', 1)], 'any pages', ['a', 'ab']],
  ['loses a name that was not synced', [create, write('a'), sync], 'synced only', [undefined]],
  ['may keep such a name', [create, write('a'), sync], 'any pages', ['a', undefined]],
  ['undoes a deletion that was not synced', unlinked, 'synced only', ['a']],
  ['may keep such a deletion', unlinked, 'any pages', ['a', undefined]],
  ['keeps a synced deletion', [...unlinked, syncFolder], 'any pages', [undefined]],
  ['keeps any sectors of a write', rewritten, 'any sectors', [ab, ad, cb, cd]],
  ['tears a write between two sectors', rewritten, 'torn write', [ab, cb, cd]],
  ['does not repair a failed sync with a later one', failed, 'synced only', ['a']],
  ['may have written before a sync failed', failed, 'any pages', ['a', 'b']],
  ['repairs pages that change again', [...failed, write('c', 1), sync], 'any pages', ['bc']],
]

for (const [title, steps, cut, found] of cases) {
  it(`the disk of the power cut tests ${title}: ${cut}`, () =>
    assert.deepEqual(cutOften(steps, cut), found))
}
