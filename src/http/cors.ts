import { corsRequestHeaders, corsResponseHeaders, preflightSeconds } from '../contract/headers.ts'
import { addField, type Exchange } from './exchange.ts'

/** Which origins may call: every one, or those in the list. */
export type AllowedOrigins = '*' | readonly string[]

/** Adds the headers that let a page of another origin read the answer. */
export function allowOrigin(exchange: Exchange, allowed: AllowedOrigins): void {
  const { origin } = exchange.request.headers
  if (allowed !== '*') addField(exchange, 'Vary', 'Origin')
  if (origin === undefined || (allowed !== '*' && !allowed.includes(origin))) return
  addField(exchange, 'Access-Control-Allow-Origin', allowed === '*' ? '*' : origin)
  addField(exchange, 'Access-Control-Expose-Headers', corsResponseHeaders)
}

/** The headers that answer a preflight. */
export function toPreflightHeaders(methods: string): Record<string, string> {
  return {
    'Access-Control-Allow-Methods': methods,
    'Access-Control-Allow-Headers': corsRequestHeaders,
    'Access-Control-Max-Age': String(preflightSeconds),
  }
}
