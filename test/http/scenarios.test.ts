import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { errorNumbers, toStatus } from '../../src/contract/errors.ts'
import { failuresOf, failuresOfPage, operations, pages } from '../../src/contract/operations.ts'
import { engines } from '../support/engines.ts'
import type { Answer } from '../support/wire.ts'
import { openScenarioServices } from './scenario-services.ts'
import { type Scenario, scenarios } from './scenarios.ts'

for (const engine of engines) {
  describe(`the answers on ${engine.name}`, async () => {
    const send = await openScenarioServices(engine)
    for (const scenario of scenarios) {
      it(scenario.title, async () => {
        const { service, answer } = await send(scenario)
        check(answer, scenario)
        if (scenario.fault === 'bug') checkLog(service.log, answer)
      })
    }
  })
}

function check(answer: Answer, { status, error, body, headers = {} }: Scenario): void {
  assert.equal(answer.status, status, answer.body.slice(0, 300))
  assert.match(answer.headers.get('x-request-id') ?? '', /^[\w-]+$/)
  if (error !== undefined) {
    const content = JSON.parse(answer.body)
    assert.deepEqual(Object.keys(content), ['error', 'message'])
    assert.equal(content.error, error)
    assert.match(content.message, /^[A-Z].*\.$/)
    assert.match(answer.headers.get('content-type') ?? '', /^application\/json/)
  }
  if (typeof body === 'string') assert.equal(answer.body, body)
  else if (body !== undefined) assert.match(answer.body, body)
  for (const [name, expected] of Object.entries(headers)) {
    const value = answer.headers.get(name) ?? ''
    if (typeof expected === 'string') assert.equal(value, expected, name)
    else assert.match(value, expected, name)
  }
}

/** A fault of ours is answered without its cause; the log has it, under the id of the request. */
function checkLog(log: string[], answer: Answer): void {
  const requestId = answer.headers.get('x-request-id')
  const entry = log.map((line) => JSON.parse(line)).find((line) => line.requestId === requestId)
  assert.equal(entry?.err.message, 'the secret cause')
}

describe('the table of scenarios', () => {
  it('has one for every number of the catalogue', () => {
    const covered = new Set(scenarios.map(({ error }) => error))
    assert.deepEqual(
      errorNumbers.filter((number) => !covered.has(number)),
      [],
    )
  })

  const promised = [
    ...Object.entries(operations).map(([name, operation]) => ({
      name,
      statuses: [
        ...Object.keys(operation.successes).map(Number),
        ...failuresOf(operation).map(toStatus),
      ],
    })),
    ...Object.entries(pages).map(([name, page]) => ({
      name,
      statuses: [200, ...failuresOfPage(page).map(toStatus)],
    })),
  ]
  for (const { name, statuses } of promised) {
    it(`has one for every status of ${name}, and none that it does not promise`, () => {
      const covered = scenarios.filter(({ of }) => of === name).map(({ status }) => status)
      const sorted = (numbers: number[]) => [...new Set(numbers)].sort()
      assert.deepEqual(sorted(covered), sorted(statuses))
    })
  }
})
