import assert from 'node:assert/strict'
import { pino } from 'pino'
import { type Environment, readConfig } from '../../src/config.ts'
import { defaultTimeouts, type Timeouts } from '../../src/contract/limits.ts'
import { scopes as everyScope, type Scope } from '../../src/contract/scopes.ts'
import type { Grace } from '../../src/http/node/node-server.ts'
import { openService } from '../../src/service.ts'
import type { Store } from '../../src/store/store.ts'
import { issueToken } from '../../src/tokens/issue.ts'
import { parseMetrics } from './metrics.ts'
import { releaseAfterTest } from './release.ts'
import { call, type Request, toBytes } from './wire.ts'

/** The operator's token in every test that needs no other. */
export const operatorToken = 'operator-token-of-the-tests'

export type TestService = Awaited<ReturnType<typeof startService>>

interface GrantOptions {
  readonly name?: string
  readonly scopes?: readonly Scope[]
  readonly lifetimeMs?: number | undefined
}

export interface TestServiceOptions {
  readonly env?: Environment
  readonly store?: Store
  readonly timeouts?: Partial<Timeouts> | undefined
}

export const authorized = { Authorization: `Bearer ${operatorToken}` }
export const json = { ...authorized, 'Content-Type': 'application/json' }

/** Starts the whole service on a free port. It is closed with the test. */
export async function startService(url: string, options: TestServiceOptions = {}) {
  const env = { PORT: '0', DATABASE_URL: url, PLANT_STORE_TOKEN: operatorToken, ...options.env }
  const log: string[] = []
  const level = options.env?.LOG_LEVEL ?? 'info'
  const service = await openService({
    config: readConfig({}, env),
    logger: pino({ level }, { write: (line: string) => log.push(line) }),
    timeouts: { ...defaultTimeouts, idleGraceMs: 0, ...options.timeouts },
    ...(options.store && { store: options.store }),
  })
  let closing: Promise<number> | undefined
  const close = (grace?: Grace) => (closing ??= service.close(grace))
  releaseAfterTest(() => close())
  const send = (request: Request) =>
    call(service.url, { ...request, headers: { ...authorized, ...request.headers } })
  /** The samples of the metrics. */
  const scrape = async () => {
    const { status, body } = await send({ path: '/metrics' })
    assert.equal(status, 200, body)
    return parseMetrics(body)
  }
  const sample = async (name: string) => (await scrape()).get(name)
  return {
    ...service,
    close,
    /** The lines of the log. */
    log,
    /** Sends a request with the operator's token. */
    call: send,
    /** Sends a create. */
    create: (body: string | Buffer, headers: Request['headers'] = {}) =>
      send({ method: 'POST', path: '/plants', body, headers: { ...json, ...headers } }),
    /** Reads a plant, as the text of the answer. */
    read: async (id: bigint | number | string) => (await send({ path: `/plants/${id}` })).body,
    /** Replaces a plant, or creates it. */
    put: (id: number, plant: object) =>
      send({ method: 'PUT', path: `/plants/${id}`, headers: json, body: JSON.stringify(plant) }),
    /** Issues a token with every scope, which never expires, unless told otherwise. */
    async issue({ name = 'test', scopes = everyScope, lifetimeMs }: GrantOptions = {}) {
      const issued = await issueToken(service.store, { name, scopes, lifetimeMs })
      return { ...issued, headers: { Authorization: `Bearer ${issued.token}` } }
    },
    scrape,
    /** The value of a sample of the metrics. */
    sample,
    /** How many connections it has, with that of the question. */
    countConnections: () => sample('plant_store_http_connections'),
  }
}

/** Asks for a plant that is not there: 40401 with a valid token. */
export async function ask(service: TestService, token: string) {
  const headers = { Authorization: `Bearer ${token}` }
  const answer = await service.call({ path: '/plants/404', headers })
  return { ...answer, error: JSON.parse(answer.body).error as number }
}

export async function numberFor(service: TestService, token: string): Promise<number> {
  return (await ask(service, token)).error
}

/** The bytes of a create with the operator's token. */
export function toCreate(id: number, headers: Request['headers'] = {}): Buffer {
  const body = `{"id":${id},"name":"x"}`
  return toBytes({ method: 'POST', path: '/plants', headers: { ...json, ...headers }, body })
}
