import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import { conflictRules } from '../../src/contract/parameters.ts'
import { engines } from '../support/engines.ts'
import { authorized, startService, type TestService } from '../support/service.ts'

async function send(service: TestService, query: string, body: string): Promise<string> {
  const headers = { ...authorized, 'Content-Type': 'text/csv' }
  const answer = await service.call({ method: 'POST', path: `/plants.csv?${query}`, headers, body })
  assert.equal(answer.status, 200, answer.body)
  return answer.body
}

/** Every plant, and every change of the journal. */
async function readAll(service: TestService): Promise<string[]> {
  const paths = ['/plants.ndjson', '/events?limit=1000']
  const answers = await Promise.all(paths.map((path) => service.call({ path })))
  return answers.map(({ body }) => body)
}

/** Rows of few plants in few forms, so that many have an id that the file or the store has. */
const row = fc.oneof(
  { weight: 9, arbitrary: fc.tuple(fc.nat(30), fc.constantFrom('a,', 'b,', 'a,x', 'a,""')) },
  { weight: 1, arbitrary: fc.constantFrom(['x', 'a,'], ['1', ','], ['1', '"']) },
)
const rows = fc
  .array(row, { minLength: 1, maxLength: 400, size: 'max' })
  .map((all) => `id,name,tag\n${all.map(([id, rest]) => `${id},${rest}\n`).join('')}`)

for (const engine of engines) {
  describe(`a dry run on ${engine.name}`, () => {
    for (const rule of conflictRules) {
      it(`reports what the import right after it reports, with on-conflict=${rule}`, async () => {
        const service = await startService(await engine.newUrl())
        await fc.assert(
          fc.asyncProperty(rows, async (body) => {
            const before = await readAll(service)
            const expected = await send(service, `on-conflict=${rule}&dry-run=true`, body)
            assert.deepEqual(await readAll(service), before)
            assert.equal(await send(service, `on-conflict=${rule}`, body), expected)
          }),
          { numRuns: 12, seed: 54, endOnFailure: true },
        )
      })
    }
  })
}
