import assert from 'node:assert/strict'
import { before, describe, it } from 'node:test'
import { type ErrorNumber, errorNumbers, toStatus } from '../../src/contract/errors.ts'
import { failuresOf, type Operation, protocolFailures } from '../../src/contract/operation.ts'
import { operations, pagePaths } from '../../src/contract/operations.ts'
import { toRequestName } from '../../src/contract/parameters.ts'
import { engines } from '../support/engines.ts'
import { parseMetrics } from '../support/metrics.ts'
import { authorized, json } from '../support/service.ts'
import { type Answer, toBytes } from '../support/wire.ts'
import { declaredHeaders, findOperation, findUndeclared, listAnswers } from './document-answers.ts'
import { buildDocumentCheck, type Verdict } from './document-check.ts'
import { openScenarioServices, type PlayScenario, toText } from './scenario-services.ts'
import { answered, get, type Scenario } from './scenarios/scenario.ts'
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
      assert.deepEqual(findUndeclared(findOperation(sent), answer), [])
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

    it('counts every answer, under series that the contract allows and no client can add to', async () => {
      const { answer } = await play(answered('metrics', get('/metrics')))
      const samples = [...parseMetrics(answer.body)]
      const names = samples.map(([name]) => name)
      const counts = names.filter((name) => name.startsWith('plant_store_http_requests_total'))
      const unknown = counts.filter((name) => !knownCounts.has(name))
      assert.deepEqual(unknown, [])
      assert.ok(counts.length > 100 && names.length < 5_000, `${names.length} samples`)
      const open = samples.filter(([name, value]) => value !== 0 && name.includes('_in_flight{'))
      assert.deepEqual(open, [['plant_store_http_requests_in_flight{operation="getMetrics"}', 1]])
    })

    it('sends every header that the document declares', () => {
      const unseen = declaredHeaders.filter((name) => !seenHeaders.has(name.toLowerCase()))
      assert.deepEqual(unseen, [])
    })
  })
}

/** The counts of answers that the contract allows. What no operation answers has one name. */
const knownCounts = new Set(
  [
    ...Object.entries(operations).map(
      ([name, operation]) =>
        [
          name,
          [...Object.keys(operation.successes).map(Number), ...failuresOf(operation)],
        ] as const,
    ),
    ...Object.keys(pagePaths).map(
      (name) => [name, [200, 304, 40400, 50000, 50301, ...protocolFailures]] as const,
    ),
    ['none', [204, ...errorNumbers]] as const,
  ].flatMap(([name, outcomes]) =>
    outcomes.map((outcome) => {
      const isError = outcome >= 40000
      const status = isError ? toStatus(outcome as ErrorNumber) : outcome
      const error = isError ? outcome : 'none'
      return `plant_store_http_requests_total{operation="${name}",status="${status}",error="${error}"}`
    }),
  ),
)

function toTitle({ title, status, error }: Scenario): string {
  return `answers ${error ?? status} to ${title}`
}

function check(answer: Answer, scenario: Scenario, sent: string): void {
  const { status, error, body, headers = {} } = scenario
  assert.equal(answer.status, status, answer.body.slice(0, 300))
  assert.match(answer.headers.get('x-request-id') ?? '', /^[\w-]+$/)
  const ageMs = Date.now() - Date.parse(answer.headers.get('date') ?? '')
  assert.ok(ageMs >= 0 && ageMs < 60_000, answer.headers.get('date'))
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

  for (const [name, { parameters }] of Object.entries<Operation>(operations)) {
    it(`has one with each parameter of ${name}`, () => {
      const texts = (byOperation.get(name) ?? []).map(toText)
      const fields = parameters.map((parameter) => toRequestName(parameter))
      const isSent = (field: string) =>
        texts.some((text) => new RegExp(`[?&\\n]${field}[=:]`).test(text))
      const unsent = fields.filter((field) => !isSent(field))
      assert.deepEqual(unsent, [])
    })
  }

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
 * Answers without a scenario. Pages and metrics answer under any load, unless more than 250
 * requests wait on their connection. Every path refuses those alike: see pipelining.test.ts.
 */
function isExempt(operationId: string, answer: string): boolean {
  return answer === '50300' && /^get(Health|Metrics)$/.test(operationId)
}

describe('the check of the document', () => {
  const sent = toBytes({ path: '/plants/1', headers: authorized }).toString()
  const fields = {
    'content-type': 'application/json; charset=utf-8',
    'x-request-id': 'a-1',
    'x-content-type-options': 'nosniff',
    'cache-control': 'private, no-cache',
    etag: '"1"',
  }
  const good = {
    status: 200,
    headers: new Map(Object.entries(fields)),
    body: '{"id":1,"name":"x"}',
  }
  const withField = (name: string, value: string) => new Map([...good.headers, [name, value]])

  it('complains about what the document does not say (control)', () => {
    const wrong: [answer: Partial<Answer>, complaint: RegExp][] = [
      [{ status: 202 }, /status code/],
      [{ headers: withField('cache-control', 'public') }, /cache-/],
      [{ headers: new Map([...good.headers].slice(0, 3)) }, /cache-/],
      [{ headers: withField('content-type', 'text/plain') }, /media type/],
      [{ body: '{"id":1,"name":5}' }, /name must be string/],
      [{ status: 404, body: '{"error":40401,"message":"","x":1}' }, /x/],
    ]
    assert.deepEqual(judge(sent, good).complaints, [])
    for (const [answer, complaint] of wrong)
      assert.match(judge(sent, { ...good, ...answer }).complaints.join(), complaint)
    const put = toBytes({ method: 'PUT', path: '/plants/1', headers: json, body: '{"tag":"x"}' })
    assert.match(judge(put.toString(), good).complaints.join(), /name/)
  })
})
