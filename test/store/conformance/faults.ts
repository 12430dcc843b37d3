import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { Failure } from '../../../src/contract/errors.ts'
import type { Store } from '../../../src/store/store.ts'
import type { Engine, StoreFault } from '../../support/engines.ts'
import { newTokenRecord } from '../../support/token-record.ts'
import type { Shared } from './shared.ts'

/** A store fails as the port says. */
export function testFaults(engine: Engine, shared: Shared): void {
  describe('faults', () => {
    it('goes on after a failed write', async () => {
      const record = newTokenRecord()
      await shared.store.addToken(record)
      await assert.rejects(shared.store.addToken(record))
      assert.equal(typeof (await shared.store.createPlant({ id: 500n, name: '' })), 'bigint')
    })

    const faults: [StoreFault, number][] = [
      ['disk full', 50700],
      ['not confirmed', 50400],
      ['not reachable', 50301],
      ['queue full', 50300],
    ]
    for (const [fault, number] of faults) {
      it(`fails every waiting write with ${number} when it is ${fault}`, async () => {
        const { store: broken, witness } = await engine.openWithFault(fault)
        const outcomes = await Promise.allSettled(
          [8n, 9n].map((id) => broken.createPlant({ id, name: 'x'.repeat(100_000) })),
        )
        for (const outcome of outcomes) assert.equal(numberOf(outcome), number)
        if (fault !== 'not confirmed') await assertNothingStored(witness)
      })
    }
  })
}

function numberOf(outcome: PromiseSettledResult<unknown>): number | undefined {
  return outcome.status === 'rejected' && outcome.reason instanceof Failure
    ? outcome.reason.number
    : undefined
}

async function assertNothingStored(store: Store): Promise<void> {
  assert.equal(await store.getPlant(8n), undefined)
  assert.equal(await store.getPlant(9n), undefined)
  assert.equal((await store.getPlant(1n))?.name, 'Aloe')
}
