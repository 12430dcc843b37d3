import assert from 'node:assert/strict'
import { IncomingMessage, ServerResponse } from 'node:http'
import { Socket } from 'node:net'
import { describe, it } from 'node:test'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { buildGate } from '../../src/http/gate.ts'

function toResponse(method: string, url: string): ServerResponse {
  return new ServerResponse(Object.assign(new IncomingMessage(new Socket()), { method, url }))
}

describe('the gate', () => {
  for (const [title, method, caller, isAtOnce] of [
    ['a write of a verified token begins at once', 'POST', 'a', true],
    ['a read waits for the end of the turn', 'GET', 'a', false],
    ['a write without a token waits for the end of the turn', 'POST', '', false],
    ['a preflight waits for the end of the turn', 'OPTIONS', '', false],
  ] as const) {
    it(title, async () => {
      const begun: ServerResponse[] = []
      const gate = buildGate({ findId: () => caller || undefined }, (response, leave) => {
        begun.push(response)
        leave()
      })
      const response = toResponse(method, '/plants')
      gate.add(response)
      assert.equal(begun.length, isAtOnce ? 1 : 0)
      await nextTurn()
      assert.deepEqual(begun, [response])
    })
  }
})
