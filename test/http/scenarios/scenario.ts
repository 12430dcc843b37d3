import type { Environment } from '../../../src/config.ts'
import { type ErrorNumber, toStatus } from '../../../src/contract/errors.ts'
import { type Format, formats } from '../../../src/contract/formats.ts'
import type { Timeouts } from '../../../src/contract/limits.ts'
import type { StoreFault } from '../../support/engines.ts'
import { authorized, json } from '../../support/service.ts'
import { type Request, toBytes } from '../../support/wire.ts'

/**
 * One request and the answer to it. The store holds the plants 1 (Monstera, indoor), -5 (Cactus,
 * no tag) and 50 to 53 (Rose, no tag). The key `used-key` created the plant 60 (Key). Scenarios
 * without a fault or settings run in the order of the list on one store, and change it: those
 * after them see what they did. A scenario with `timeouts` or `env` (even `{}`) gets an empty store,
 * which it shares with those of equal settings.
 */
export interface Scenario {
  /** A noun phrase for the request. */
  readonly title: string
  readonly request: Request | Buffer | string
  readonly status: number
  readonly error?: ErrorNumber
  /** The exact body, or a pattern of it. */
  readonly body?: string | RegExp
  /** The exact value of each header, or a pattern of it. The empty string stands for no header. */
  readonly headers?: Readonly<Record<string, string | RegExp>>
  /** Sets the service apart from the usual one. */
  readonly fault?: Fault
  readonly timeouts?: Partial<Timeouts>
  readonly env?: Environment
}

/** The faults of an engine, those that a store is made to throw, and those of the service. */
export type Fault = StoreFault | ThrownFault | 'rate limit' | 'shutting down'
export type ThrownFault = 'bug' | 'unreachable' | 'full'

type Details = Partial<Scenario>

/** Placeholders for tokens that the suite issues. */
export const expiredToken = 'the-expired-token'
export const readerToken = 'the-token-that-only-reads'
export const writerToken = 'the-token-that-only-writes'
export const metricsToken = 'the-token-that-only-reads-metrics'

/** Placeholders for the entity tags of these plants. */
export const tagOf = { 1: 'the-tag-of-1', 50: 'the-tag-of-50', 52: 'the-tag-of-52' }

/** Expects a success: 200 unless the details say otherwise. */
export function answered(
  title: string,
  request: Scenario['request'],
  details: Details = {},
): Scenario {
  return { title, request, status: 200, ...details }
}

/** Expects a failure with this error number. */
export function refused(
  error: ErrorNumber,
  title: string,
  request: Scenario['request'],
  details: Details = {},
): Scenario {
  return { title, request, status: toStatus(error), error, ...details }
}

/** Successes alike, each under the title of its request. */
export function answeredAll(
  requests: Readonly<Record<string, Scenario['request']>>,
  details: Details = {},
): Scenario[] {
  return Object.entries(requests).map(([title, request]) => answered(title, request, details))
}

/** Refusals with the same number, each under the title of its request. */
export function refusedAll(
  error: ErrorNumber,
  requests: Readonly<Record<string, Scenario['request']>>,
  details: Details = {},
): Scenario[] {
  return Object.entries(requests).map(([title, request]) => refused(error, title, request, details))
}

export function get(path: string, headers: Request['headers'] = {}): Request {
  return { path, headers: { ...authorized, ...headers } }
}

/** A GET without a token. */
export function visit(path: string, headers: Request['headers'] = {}): Request {
  return { path, headers }
}

export function post(body: string | Buffer, headers: Request['headers'] = {}): Request {
  return { method: 'POST', path: '/plants', body, headers: { ...json, ...headers } }
}

export function put(path: string, body: string, headers: Request['headers'] = {}): Request {
  return { method: 'PUT', path, body, headers: { ...json, ...headers } }
}

export function del(path: string, headers: Request['headers'] = {}): Request {
  return { method: 'DELETE', path, headers: { ...authorized, ...headers } }
}

/** An import. */
export function upload(
  format: Format,
  body: string | Buffer,
  headers: Request['headers'] = {},
  query = '',
): Request {
  const type = { 'Content-Type': formats[format].mediaType }
  const path = `/plants.${format}${query}`
  return { method: 'POST', path, body, headers: { ...authorized, ...type, ...headers } }
}

/** A create whose body comes in chunks. */
export function postChunks(chunks: string, encoding = 'chunked'): Buffer {
  const head = post('', { 'Transfer-Encoding': encoding })
  return Buffer.concat([toBytes(head), Buffer.from(chunks)])
}

/** Bodies that are stored under any id, or under that of the path. */
export const fern = '{"id":7,"name":"Fern"}'
export const rose = '{"name":"Rose","tag":"garden"}'
