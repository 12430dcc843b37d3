import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { Deferred } from '../../src/store/soon.ts'

describe('what will be known soon', () => {
  const failure = new Error('no')

  it('calls back in the moment in which it is known, in order, each with what the step before made of it', () => {
    const heard: unknown[] = []
    const deferred = new Deferred<number>()
    deferred.then((value) => value + 1).then((value) => heard.push(`first ${value}`))
    deferred.then((value) => heard.push(`second ${value}`))
    assert.equal(heard.length, 0)
    deferred.fulfill(1)
    assert.deepEqual(heard, ['first 2', 'second 1'])
    deferred.then((value) => heard.push(`late ${value}`))
    assert.equal(heard.at(-1), 'late 1')
  })

  it('can be awaited', async () => {
    assert.equal(await Deferred.fulfilled(1), 1)
    await assert.rejects(async () => Deferred.rejected(failure), failure)
    const deferred = new Deferred<number>()
    setImmediate(() => deferred.fulfill(2))
    assert.deepEqual(await Promise.all([deferred, Deferred.fulfilled(3)]), [2, 3])
  })

  it('is settled once', async () => {
    const deferred = new Deferred<number>()
    deferred.fulfill(1)
    deferred.fulfill(2)
    deferred.reject(failure)
    assert.equal(await deferred, 1)
  })

  it('passes a failure on until somebody takes it', async () => {
    const skipped: unknown[] = []
    const taken = Deferred.rejected(failure)
      .then((value) => skipped.push(value))
      .catch((reason) => ({ reason }))
    assert.deepEqual(await taken, { reason: failure })
    assert.deepEqual(skipped, [])
    assert.equal(await Deferred.fulfilled(1).catch(() => 2), 1)
  })

  it('makes a failure of what a step throws, and does not throw it at whoever knew', async () => {
    const deferred = new Deferred<number>()
    const heard: unknown[] = []
    const thrown = deferred.then(() => {
      throw failure
    })
    deferred.then((value) => heard.push(value))
    deferred.fulfill(1)
    assert.deepEqual(heard, [1])
    await assert.rejects(async () => thrown, failure)
  })

  it('waits for a step that answers later', async () => {
    const later = Deferred.fulfilled(1).then(async (value) => value + 1)
    assert.equal(await later, 2)
    await assert.rejects(
      async () => Deferred.fulfilled(1).then(() => Promise.reject(failure)),
      failure,
    )
    const open = new Deferred<number>()
    const joined = Deferred.fulfilled(0).then(() => open)
    open.fulfill(4)
    assert.equal(await joined, 4)
  })
})
