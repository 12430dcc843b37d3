import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { errorNumbers, Failure, toStatus } from '../../src/contract/errors.ts'
import { failuresOf, failuresOfPage, operations, pages } from '../../src/contract/operations.ts'
import type { Scope } from '../../src/contract/scopes.ts'
import type { Store } from '../../src/store/store.ts'
import { issueToken } from '../../src/tokens/issue.ts'
import { type Engine, engines } from '../support/engines.ts'
import { startService, type TestService } from '../support/service.ts'
import { type Answer, exchange, toBytes } from '../support/wire.ts'
import {
  expiredToken,
  readerToken,
  type Scenario,
  scenarios,
  tagOf,
  writerToken,
} from './scenarios.ts'

for (const engine of engines) {
  describe(`the answers on ${engine.name}`, async () => {
    const usual = await startService(await engine.newUrl())
    await usual.create('{"id":1,"name":"Monstera","tag":"indoor"}')
    await usual.create('{"id":-5,"name":"Cactus"}')
    for (const id of [50, 51, 52, 53]) await usual.create(`{"id":${id},"name":"Rose"}`)
    await usual.create('{"id":60,"name":"Key"}', { 'Idempotency-Key': 'used-key' })
    const placeholders = await issueTokens(usual.store)
    for (const [id, placeholder] of Object.entries(tagOf)) {
      const { headers } = await usual.call({ path: `/plants/${id}` })
      placeholders.set(placeholder, headers.get('etag') ?? '')
    }

    const shared = new Map<string, TestService>()
    for (const scenario of scenarios.filter(isShared)) {
      const key = toKey(scenario)
      if (!shared.has(key)) shared.set(key, await startUnusual(engine, scenario))
    }

    for (const scenario of scenarios) {
      it(scenario.title, async () => {
        const made = isUsual(scenario) ? usual : shared.get(toKey(scenario))
        const service = made ?? (await startUnusual(engine, scenario))
        const answer = await send(service.url, scenario, placeholders)
        check(answer, scenario)
        if (scenario.fault === 'bug') checkLog(service.log, answer)
      })
    }
  })
}

async function issueTokens(store: Store): Promise<Map<string, string>> {
  const issue = async (scopes: Scope[], lifetimeMs?: number) =>
    (await issueToken(store, { name: 'test', scopes, lifetimeMs })).token
  return new Map([
    [expiredToken, await issue(['plants:read'], -1)],
    [readerToken, await issue(['plants:read'])],
    [writerToken, await issue(['plants:write'])],
  ])
}

function isUsual({ fault, limits }: Scenario): boolean {
  return fault === undefined && limits === undefined
}

/** Whether scenarios with the same fault can share a service: it does not change with use. */
function isShared(scenario: Scenario): boolean {
  const { fault } = scenario
  return !isUsual(scenario) && fault !== 'not confirmed' && fault !== 'not reachable'
}

function toKey({ fault, limits }: Scenario): string {
  return JSON.stringify([fault, limits])
}

async function startUnusual(engine: Engine, { fault, limits = {} }: Scenario) {
  const url = await engine.newUrl()
  if (fault === undefined) return startService(url, { limits })
  if (fault === 'rate limit') {
    const service = await startService(url, { env: { RATE_LIMIT: '1/h' } })
    await service.call({ path: '/plants' })
    return service
  }
  if (!isThrown(fault)) {
    const { store, witness } = await engine.openWithFault(fault)
    return startService(url, {
      store: { ...store, close: () => store.close().finally(witness.close) },
    })
  }
  const store = await engine.open(url)
  const fail = async () => {
    throw thrown[fault]()
  }
  return startService(url, {
    store: {
      ...store,
      createPlant: fail,
      getPlant: fail,
      listPlants: fail,
      replacePlant: fail,
      removePlant: fail,
      ping: fail,
    },
  })
}

/** Faults that a store is made to have, because none of the engines can be made to have them. */
const thrown = {
  bug: () => new TypeError('the secret cause'),
  'no ping': () => new Failure(50301, 'No answer.'),
  'always full': () => new Failure(50700, 'Full.'),
}

function isThrown(fault: string): fault is keyof typeof thrown {
  return fault in thrown
}

async function send(
  url: string,
  { request }: Scenario,
  placeholders: Map<string, string>,
): Promise<Answer> {
  const isRaw = typeof request === 'string' || Buffer.isBuffer(request)
  const hasNoBody = !isRaw && request.method === 'HEAD'
  let bytes = Buffer.from(isRaw ? request : toBytes(request))
  for (const [placeholder, value] of placeholders) {
    if (!bytes.includes(placeholder)) continue
    bytes = Buffer.from(bytes.toString('latin1').replace(placeholder, value), 'latin1')
  }
  const [answer] = await exchange(url, bytes, { hasNoBody })
  assert.ok(answer, 'the connection was closed without an answer')
  return answer
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
