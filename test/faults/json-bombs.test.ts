import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { before, describe, it } from 'node:test'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { promisify } from 'node:util'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { limits } from '../../src/contract/limits.ts'
import { startService, type TestService } from '../support/service.ts'
import { type Bomb, bombs } from './lab/bombs.ts'
import { isLong, scale } from './lab/scale.ts'

const mebibyte = 1024 * 1024
const allowedMib = 8
const tooLong: Bomb = {
  title: 'a byte more than a body may have',
  toBody: () => Buffer.alloc(limits.bodyBytes + 1, ' '),
  answer: 41300,
}

describe('a JSON bomb', () => {
  const rounds = scale(1, 5)
  let service: TestService
  before(async () => {
    service = await startService('sqlite::memory:')
  })

  /** Sends a bomb, and deletes the plant if one was stored. */
  async function send({ toBody, answer }: Bomb): Promise<void> {
    const created = await service.create(toBody())
    const actual = created.status === 200 ? 200 : JSON.parse(created.body).error
    const path = created.headers.get('location') ?? '/plants/1'
    const { status } = await service.call({ method: 'DELETE', path })
    assert.equal(actual, answer, created.body.slice(0, 300))
    assert.equal(status, answer === 200 ? 204 : 404)
  }

  for (const bomb of [...bombs, tooLong]) {
    it(`is answered with ${bomb.answer}: ${bomb.title}`, async () => {
      for (let round = 0; round < rounds; round++) await send(bomb)
    })
  }

  it('leaves no memory behind', async (t) => {
    // Every bomb has been sent once, so that caches are filled.
    const before = await measureMemoryMib()
    const again = bombs.filter((_, index) => isLong || index % 5 === 0)
    // So many that they would take more memory than is allowed if only their texts were kept.
    const count = (2 * allowedMib * mebibyte) / limits.bodyBytes
    for (let sent = 0; sent < count; sent++) await send(again[sent % again.length] as Bomb)
    const grown = (await measureMemoryMib()) - before
    t.diagnostic(`${grown.toFixed(1)} MiB more after ${count} bombs`)
    assert.ok(grown < allowedMib, `${grown} MiB`)
  })

  it('is judged with a heap of 64 MB', async () => {
    const program = join(import.meta.dirname, 'lab', 'judge-bombs.ts')
    const args = ['--max-old-space-size=64', program]
    const { stdout } = await promisify(execFile)(process.execPath, args)
    assert.equal(stdout, `${bombs.length} bombs\n`)
  })
})

async function measureMemoryMib(): Promise<number> {
  setFlagsFromString('--expose-gc')
  const collectGarbage: () => void = runInNewContext('gc')
  // A closed connection is released some turns later.
  for (let turn = 0; turn < 20; turn++) {
    await nextTurn()
    if (turn % 5 === 4) collectGarbage()
  }
  const { heapUsed, external } = process.memoryUsage()
  return (heapUsed + external) / mebibyte
}
