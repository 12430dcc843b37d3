import assert from 'node:assert/strict'
import { before, describe, it } from 'node:test'
import { errorNumbers } from '../../src/contract/errors.ts'
import { engines } from '../support/engines.ts'
import type { Answer } from '../support/wire.ts'
import {
  declaredHeaders,
  findHeaderFaults,
  findOperation,
  listAnswers,
} from './document-answers.ts'
import { buildDocumentCheck, type Verdict } from './document-check.ts'
import { openScenarioServices, type PlayScenario, toText } from './scenario-services.ts'
import type { Scenario } from './scenarios/scenario.ts'
import { scenarios } from './scenarios.ts'

const judge = await buildDocumentCheck()

for (const engine of engines) {
  describe(`the service on ${engine.name}`, () => {
    const seenHeaders = new Set<string>()
    let play: PlayScenario
    before(async () => {
      play = await openScenarioServices(engine)
    })

    async function run(scenario: Scenario): Promise<void> {
      const { service, sent, answer } = await play(scenario)
      check(answer, scenario, sent)
      assert.deepEqual(findHeaderFaults(findOperation(sent), answer), [])
      checkDocumented(judge(sent, answer), sent, answer)
      for (const name of answer.headers.keys()) seenHeaders.add(name)
      if (scenario.fault === 'bug') checkLog(service.log, answer)
    }

    for (const scenario of scenarios.filter(({ timeouts }) => timeouts === undefined)) {
      it(toTitle(scenario), () => run(scenario))
    }

    describe('with clients that keep it waiting', { concurrency: 16 }, () => {
      for (const scenario of scenarios.filter(({ timeouts }) => timeouts !== undefined)) {
        it(toTitle(scenario), () => run(scenario))
      }
    })

    it('sends every header that the document declares', () => {
      const unseen = declaredHeaders.filter((name) => !seenHeaders.has(name.toLowerCase()))
      assert.deepEqual(unseen, [])
    })
  })
}

function toTitle({ title, status, error }: Scenario): string {
  return `answers ${error ?? status} to ${title}`
}

function check(answer: Answer, scenario: Scenario, sent: string): void {
  const { status, error, body, headers = {} } = scenario
  assert.equal(answer.status, status, answer.body.slice(0, 300))
  assert.match(answer.headers.get('x-request-id') ?? '', /^[\w-]+$/)
  if (error !== undefined) {
    assert.match(answer.headers.get('content-type') ?? '', /^application\/json/)
    if (!sent.startsWith('HEAD ')) checkError(answer.body, error)
  }
  if (typeof body === 'string') assert.equal(answer.body, body)
  else if (body !== undefined) assert.match(answer.body, body)
  for (const [name, expected] of Object.entries(headers)) {
    const value = answer.headers.get(name) ?? ''
    if (typeof expected === 'string') assert.equal(value, expected, name)
    else assert.match(value, expected, name)
  }
}

function checkError(body: string, error: number): void {
  const content = JSON.parse(body)
  assert.deepEqual(Object.keys(content), ['error', 'message'])
  assert.equal(content.error, error)
  assert.match(content.message, /^[A-Z].*\.$/)
}

/** Web pages, OPTIONS, unknown paths and broken requests are outside of the document. */
function checkDocumented({ operationId, complaints }: Verdict, sent: string, answer: Answer): void {
  assert.deepEqual(complaints, [])
  if (operationId !== undefined) return
  const isWebPage = /^(GET|HEAD) \/(docs|assets\/.*|openapi\.json)?[ ?]/.test(sent)
  const known = [204, 400, 404, 405, 408, 414, 417, 431, 503, 505]
  assert.ok(isWebPage || known.includes(answer.status), String(answer.status))
}

/** An answer never tells the cause of a bug; the log has it, under the id of the request. */
function checkLog(log: string[], answer: Answer): void {
  const requestId = answer.headers.get('x-request-id')
  const entry = log.map((line) => JSON.parse(line)).find((line) => line.requestId === requestId)
  assert.equal(entry?.err.message, 'the secret cause')
}

describe('the table of scenarios', () => {
  const byOperation = Map.groupBy(
    scenarios,
    (scenario) => findOperation(toText(scenario))?.operationId,
  )

  it('has one for every number of the catalogue', () => {
    const covered = new Set(scenarios.map(({ error }) => error))
    const missing = errorNumbers.filter((number) => !covered.has(number))
    assert.deepEqual(missing, [])
  })

  for (const { operationId, answers } of listAnswers()) {
    it(`has one for every answer of ${operationId}, and none that the document lacks`, () => {
      const covered = (byOperation.get(operationId) ?? []).map(({ error, status }) =>
        String(error ?? status),
      )
      const expected = answers.filter((one) => !isExempt(operationId, one))
      assert.deepEqual([...new Set(covered)].sort(), expected.sort())
    })
  }
})

/**
 * Answers without a scenario. Pages and metrics answer under any load, unless more than 1,000
 * requests wait on their connection. Every path refuses those alike: see pipelining.test.ts.
 */
function isExempt(operationId: string, answer: string): boolean {
  return answer === '50300' && /^get(Health|Metrics)$/.test(operationId)
}
