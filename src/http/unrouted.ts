import { Failure } from '../contract/errors.ts'
import { methodsByPath } from '../contract/methods.ts'
import { toPreflightHeaders } from './cors.ts'
import { type Exchange, send } from './exchange.ts'
import { sendFailure } from './failures.ts'

const everyMethod = [...new Set([...methodsByPath.values()].flat())].sort().join(', ')

/** Answers what has no handler: OPTIONS, a method that the path does not know, an unknown path. */
export function answerUnrouted(exchange: Exchange, allowedHere: string | undefined): void {
  const { method, headers } = exchange.request
  const allow = exchange.url === '*' ? everyMethod : allowedHere
  if (allow === undefined) {
    sendFailure(exchange, new Failure(40400, 'There is nothing at this path. See /docs.'))
  } else if (method === 'OPTIONS') {
    const isPreflight = headers['access-control-request-method'] !== undefined
    send(exchange, 204, { Allow: allow, ...(isPreflight ? toPreflightHeaders(allow) : {}) })
  } else {
    const message = `The method ${method} is not known here. Allowed: ${allow}.`
    sendFailure(exchange, new Failure(40500, message, { headers: { Allow: allow } }))
  }
}
