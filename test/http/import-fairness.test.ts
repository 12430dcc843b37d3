import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { defaultTimeouts } from '../../src/contract/limits.ts'
import { buildImports } from '../../src/http/imports.ts'
import { openStore } from '../../src/store/open.ts'
import type { Store } from '../../src/store/store.ts'
import { releaseAfterTest } from '../support/release.ts'

const events = { onLost() {}, onFound() {} }
const request = { format: 'ndjson', rule: 'fail', tokenId: 'tok_test' } as const

/** Imports 2,000 plants and answers how many each batch had. */
async function importBeside(countRequests: () => number): Promise<number[]> {
  const store = await openStore(
    { engine: 'sqlite', path: ':memory:', label: 'sqlite::memory:' },
    events,
  )
  releaseAfterTest(() => store.close())
  const sizes: number[] = []
  const counted: Store = {
    ...store,
    importPlants(plants, ...rest) {
      sizes.push(plants.length)
      return store.importPlants(plants, ...rest)
    },
  }
  const lines = Array.from({ length: 2_000 }, (_, id) => `{"id":${id},"name":"x"}\n`)
  async function* read() {
    yield Buffer.from(lines.join(''))
  }
  const { signal } = new AbortController()
  const upload = { chunks: read(), signal, received: () => 0, end() {} }
  const report = await buildImports(counted, countRequests, defaultTimeouts).run(upload, request)
  assert.equal(report.stored, 2_000)
  return sizes
}

describe('an import', () => {
  it('stores 500 plants at a time while there is no other request', async () => {
    assert.deepEqual(await importBeside(() => 1), [500, 500, 500, 500])
  })

  it('stores 16 plants at a time while other requests come: they wait for one batch', async () => {
    let requests = 1
    const sizes = await importBeside(() => ++requests)
    assert.deepEqual(
      sizes,
      Array.from({ length: 125 }, () => 16),
    )
  })
})
