import { Failure } from '../contract/errors.ts'
import { methodsByPath } from '../contract/methods.ts'
import { toPreflightHeaders } from './cors.ts'
import { type Exchange, send } from './exchange.ts'
import { sendFailure } from './failures.ts'
import { toPath } from './routes.ts'

const everyMethod = [...new Set([...methodsByPath.values()].flat())].sort().join(', ')

/** Answers requests without a handler: OPTIONS, an unknown method, an unknown path. */
export function answerUnrouted(exchange: Exchange, allowedHere: string | undefined): void {
  const { method, headers } = exchange.request
  const isPreflight = headers['access-control-request-method'] !== undefined
  // The preflight of an unknown path passes, so that a browser shows our 404 and no CORS error.
  const isAnywhere = exchange.url === '*' || (method === 'OPTIONS' && isPreflight)
  const allow = allowedHere ?? (isAnywhere ? everyMethod : undefined)
  if (allow === undefined) sendFailure(exchange, nothingAt(exchange.url))
  else if (method === 'OPTIONS') {
    send(exchange, 204, { Allow: allow, ...(isPreflight ? toPreflightHeaders(allow) : {}) })
  } else {
    const message = `The method ${method} is not known here. Allowed: ${allow}.`
    sendFailure(exchange, new Failure(40500, message, { headers: { Allow: allow } }))
  }
}

/** Nothing exists at this path. */
export function nothingAt(url: string): Failure {
  const path = toPath(url) ?? ''
  const isKnown = path.endsWith('/') && methodsByPath.has(path.slice(0, -1))
  const hint = isKnown ? 'Leave out the slash at the end.' : 'See /docs.'
  return new Failure(40400, `There is nothing at this path. ${hint}`)
}
