import assert from 'node:assert/strict'
import { Failure } from '../../src/contract/errors.ts'
import type { Scope } from '../../src/contract/scopes.ts'
import type { Store } from '../../src/store/store.ts'
import { issueToken } from '../../src/tokens/issue.ts'
import type { Engine } from '../support/engines.ts'
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

/** What a scenario sent, to the byte, and what came back. */
export interface Traffic {
  readonly service: TestService
  readonly sent: string
  readonly answer: Answer
}

/** Sends the requests of scenarios, each to a service that is as the scenario wants it. */
export async function openScenarioServices(engine: Engine) {
  const services = new Map<string, TestService>()
  const usual = await startService(await engine.newUrl())
  services.set(toKey({}), usual)
  await usual.create('{"id":1,"name":"Monstera","tag":"indoor"}')
  await usual.create('{"id":-5,"name":"Cactus"}')
  for (const id of [50, 51, 52, 53]) await usual.create(`{"id":${id},"name":"Rose"}`)
  await usual.create('{"id":60,"name":"Key"}', { 'Idempotency-Key': 'used-key' })
  const placeholders = await issueTokens(usual.store)
  for (const [id, placeholder] of Object.entries(tagOf)) {
    const { headers } = await usual.call({ path: `/plants/${id}` })
    placeholders.push([placeholder, headers.get('etag') ?? ''])
  }

  // Now, and not in the first test that needs one: they would end with that test.
  for (const scenario of scenarios.filter(isShared)) {
    const key = toKey(scenario)
    if (!services.has(key)) services.set(key, await startUnusual(engine, scenario))
  }

  return async (scenario: Scenario): Promise<Traffic> => {
    const { request } = scenario
    const service = services.get(toKey(scenario)) ?? (await startUnusual(engine, scenario))
    const isRaw = typeof request === 'string' || Buffer.isBuffer(request)
    let sent = Buffer.from(isRaw ? request : toBytes(request)).toString('latin1')
    for (const [placeholder, value] of placeholders) sent = sent.replace(placeholder, value)
    const hasNoBody = !isRaw && request.method === 'HEAD'
    const [answer] = await exchange(service.url, Buffer.from(sent, 'latin1'), { hasNoBody })
    assert.ok(answer, 'the connection was closed without an answer')
    return { service, sent, answer }
  }
}

/** Two faults change with use: each scenario gets a service of its own. */
function isShared({ fault }: Scenario): boolean {
  return fault !== 'not confirmed' && fault !== 'not reachable'
}

function toKey({ fault, timeouts }: Pick<Scenario, 'fault' | 'timeouts'>): string {
  return JSON.stringify([fault, timeouts])
}

async function issueTokens(store: Store): Promise<[placeholder: string, token: string][]> {
  const issue = async (scopes: Scope[], lifetimeMs?: number) =>
    (await issueToken(store, { name: 'test', scopes, lifetimeMs })).token
  return [
    [expiredToken, await issue(['plants:read'], -1)],
    [readerToken, await issue(['plants:read'])],
    [writerToken, await issue(['plants:write'])],
  ]
}

/** Faults that a store is made to have, because none of the engines can be made to have them. */
const thrown = {
  bug: () => new TypeError('the secret cause'),
  'no ping': () => new Failure(50301, 'No answer.'),
  'always full': () => new Failure(50700, 'Full.'),
}

async function startUnusual(engine: Engine, { fault, timeouts }: Scenario): Promise<TestService> {
  const url = await engine.newUrl()
  if (fault === undefined) return startService(url, { timeouts })
  if (fault === 'rate limit') {
    const service = await startService(url, { env: { RATE_LIMIT: '1/h' } })
    await service.call({ path: '/plants' })
    return service
  }
  if (fault !== 'bug' && fault !== 'no ping' && fault !== 'always full') {
    const { store, witness } = await engine.openWithFault(fault)
    const close = () => store.close().finally(witness.close)
    return startService(url, { store: { ...store, close } })
  }
  const store = await engine.open(url)
  const fail = () => Promise.reject(thrown[fault]())
  const names = ['createPlant', 'getPlant', 'listPlants', 'replacePlant', 'deletePlant', 'ping']
  const failing = Object.fromEntries(names.map((name) => [name, fail]))
  return startService(url, { store: { ...store, ...failing } })
}
