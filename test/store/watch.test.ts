import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { buildWatch } from '../../src/store/changes.ts'
import { releaseAfterTest } from '../support/release.ts'
import { waitUntil } from '../support/wait.ts'

describe('the watch of a store', () => {
  it('polls again for a watcher that comes after all have left', async () => {
    let polls = 0
    const watch = buildWatch(() => ++polls, 1)
    const leave = watch.add(() => {})
    await waitUntil(() => polls > 0, 'it polls')
    leave()
    const before = polls
    await waitUntil(() => polls > before, 'it has polled for the last time')
    for (let turn = 0; turn < 100; turn++) await nextTurn()
    assert.equal(polls, before + 1)
    let wakes = 0
    releaseAfterTest(watch.add(() => wakes++))
    await waitUntil(() => wakes > 0, 'the watcher is told of the next change')
  })
})
