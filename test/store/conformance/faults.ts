import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { Failure } from '../../../src/contract/errors.ts'
import { type Store, toPlantId } from '../../../src/store/store.ts'
import type { Engine, StoreFault } from '../../support/engines.ts'
import { newTokenRecord } from '../../support/token-record.ts'

/** A store fails as the port says. */
export function testFaults(engine: Engine, store: Store): void {
  describe('faults', () => {
    it('continues after a failed write, and journals nothing of its batch', async () => {
      const record = newTokenRecord()
      await store.addToken(record)
      const before = await store.journalEnd()
      const [created, added] = await Promise.allSettled([
        store.createPlant({ id: 501n, name: '' }),
        store.addToken(record),
      ])
      assert.equal(added.status, 'rejected')
      assert.equal(typeof (await store.createPlant({ id: 500n, name: '' })), 'bigint')
      const page = await store.readJournal(before, 10)
      assert.ok(typeof page === 'object')
      // PostgreSQL does not run the two in one transaction.
      const ids = created.status === 'rejected' ? [500n] : [501n, 500n]
      assert.deepEqual(page.events.map(toPlantId), ids)
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
