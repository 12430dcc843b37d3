import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connect } from 'node:net'
import { Failure } from '../../src/contract/errors.ts'
import type { Scope } from '../../src/contract/scopes.ts'
import type { Store } from '../../src/store/store.ts'
import { issueToken } from '../../src/tokens/issue.ts'
import type { Engine } from '../support/engines.ts'
import { startService, type TestService } from '../support/service.ts'
import { type Answer, exchange, toBytes } from '../support/wire.ts'
import {
  expiredToken,
  type Fault,
  metricsToken,
  readerToken,
  type Scenario,
  type ThrownFault,
  tagOf,
  writerToken,
} from './scenarios/scenario.ts'
import { scenarios } from './scenarios.ts'

/** What a scenario sent, to the byte, and what came back. */
export interface Traffic {
  readonly service: TestService
  readonly sent: string
  readonly answer: Answer
}

/** Sends the request of a scenario to the service that the scenario is about. */
export type PlayScenario = (scenario: Scenario) => Promise<Traffic>

/** A service for a scenario, and the values of its placeholders. */
interface Prepared {
  readonly service: TestService
  readonly placeholders: readonly [placeholder: string, value: string][]
  /** Lets go of what holds the service in its state. */
  release?(): void
}

/**
 * Opens the services that the scenarios share, and returns the function that plays a scenario. They
 * are closed with the suite whose `before` calls this, or with the test.
 */
export async function openScenarioServices(engine: Engine): Promise<PlayScenario> {
  const shared = new Map<string, Prepared>()
  for (const scenario of scenarios.filter(isShared)) {
    const key = toKey(scenario)
    if (!shared.has(key)) shared.set(key, await prepare(engine, scenario))
  }

  return async (scenario) => {
    const known = shared.get(toKey(scenario))
    const { service, placeholders, release } = known ?? (await prepare(engine, scenario))
    let sent = toText(scenario)
    for (const [placeholder, value] of placeholders) sent = sent.replace(placeholder, value)
    const hasNoBody = sent.startsWith('HEAD ')
    const [answer] = await exchange(service.url, Buffer.from(sent, 'latin1'), { hasNoBody })
    release?.()
    assert.ok(answer, 'the connection was closed without an answer')
    return { service, sent, answer }
  }
}

/** A request as it is sent, placeholders aside. */
export function toText({ request }: Scenario): string {
  if (typeof request === 'string') return request
  return (Buffer.isBuffer(request) ? request : toBytes(request)).toString('latin1')
}

/** These faults change with use: each scenario gets a service of its own. */
const unshared: Scenario['fault'][] = ['not confirmed', 'not reachable', 'shutting down']

function isShared({ fault }: Scenario): boolean {
  return !unshared.includes(fault)
}

function toKey({ fault, timeouts, env }: Scenario): string {
  return JSON.stringify([fault, timeouts, env])
}

async function prepare(engine: Engine, scenario: Scenario): Promise<Prepared> {
  const { fault, timeouts, env } = scenario
  if (fault === 'shutting down') return startShutdown(engine)
  if (fault !== undefined) return { service: await startFaulty(engine, fault), placeholders: [] }
  const url = await engine.newUrl()
  const store = await engine.open(url)
  const service = await startService(url, { store, timeouts, ...(env && { env }) })
  const placeholders = await issueTokens(service.store)
  if (timeouts === undefined && env === undefined) {
    await storePlants(service)
    placeholders.push(...(await readTags(service)))
  }
  return { service, placeholders }
}

async function storePlants(service: TestService): Promise<void> {
  await service.create('{"id":1,"name":"Monstera","tag":"indoor"}')
  await service.create('{"id":-5,"name":"Cactus"}')
  for (const id of [50, 51, 52, 53]) await service.create(`{"id":${id},"name":"Rose"}`)
  await service.create('{"id":60,"name":"Key"}', { 'Idempotency-Key': 'used-key' })
}

function readTags(service: TestService): Promise<[placeholder: string, tag: string][]> {
  return Promise.all(
    Object.entries(tagOf).map(async ([id, placeholder]) => {
      const { headers } = await service.call({ path: `/plants/${id}` })
      return [placeholder, headers.get('etag') ?? '']
    }),
  )
}

async function issueTokens(store: Store): Promise<[placeholder: string, token: string][]> {
  const issue = async (scopes: Scope[], lifetimeMs?: number) =>
    (await issueToken(store, { name: 'test', scopes, lifetimeMs })).token
  return [
    [expiredToken, await issue(['plants:read'], -1)],
    [metricsToken, await issue(['metrics:read'])],
    [readerToken, await issue(['plants:read'])],
    [writerToken, await issue(['plants:write'])],
  ]
}

/** A shutdown continues for as long as a client stays connected. */
async function startShutdown(engine: Engine): Promise<Prepared> {
  const service = await startService(await engine.newUrl(), { timeouts: { idleGraceMs: 60_000 } })
  const client = connect(Number(new URL(service.url).port), '127.0.0.1')
  client.write(toBytes({ path: '/readyz' }))
  await once(client, 'data')
  service.close()
  return { service, placeholders: [], release: () => client.destroy() }
}

async function startFaulty(
  engine: Engine,
  fault: Exclude<Fault, 'shutting down'>,
): Promise<TestService> {
  const url = await engine.newUrl()
  if (fault === 'rate limit') {
    const service = await startService(url, { env: { RATE_LIMIT: '1/h' } })
    await service.call({ path: '/plants' })
    return service
  }
  if (fault in thrown) {
    return startService(url, {
      store: withThrown(await engine.open(url), thrown[fault as ThrownFault]),
    })
  }
  const { store } = await engine.openWithFault(fault as Exclude<typeof fault, ThrownFault>)
  return startService(url, { store })
}

/** Faults that a store is made to have, because no engine can be made to have them. */
const thrown: Record<ThrownFault, () => Error> = {
  bug: () => new TypeError('the secret cause'),
  unreachable: () => new Failure(50301, 'No answer.'),
  full: () => new Failure(50700, 'Full.'),
}

/** Everything fails but what a start, a token and a shutdown need. */
function withThrown(store: Store, toError: () => Error): Store {
  const kept = [
    'addFirstToken',
    'findToken',
    'tokenRevision',
    'noteTokenUses',
    'receivers',
    'watchJournal',
    'isFull',
    'close',
  ]
  const fail = () => Promise.reject(toError())
  const failing = Object.keys(store).filter((name) => !kept.includes(name))
  return { ...store, ...Object.fromEntries(failing.map((name) => [name, fail])) }
}
