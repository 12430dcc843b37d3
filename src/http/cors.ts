import { corsRequestHeaders, corsResponseHeaders, preflightSeconds } from '../contract/headers.ts'
import { addField, type Exchange } from './exchange.ts'

/** Which origins may call: every one, or those in the list. */
export type AllowedOrigins = '*' | readonly string[]

/** Puts the headers on the answer that let a page of another origin read it. */
export function allowOrigin(exchange: Exchange, allowed: AllowedOrigins): void {
  const { origin } = exchange.request.headers
  if (allowed !== '*') addField(exchange, 'Vary', 'Origin')
  if (origin === undefined || (allowed !== '*' && !allowed.includes(origin))) return
  addField(exchange, 'Access-Control-Allow-Origin', allowed === '*' ? '*' : origin)
  addField(exchange, 'Access-Control-Expose-Headers', corsResponseHeaders)
}

/** What a browser hears when it asks before it sends. */
export function toPreflightHeaders(methods: string): Record<string, string> {
  return {
    'Access-Control-Allow-Methods': methods,
    'Access-Control-Allow-Headers': corsRequestHeaders,
    'Access-Control-Max-Age': String(preflightSeconds),
  }
}
