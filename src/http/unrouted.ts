import type { FastifyReply, FastifyRequest } from 'fastify'
import { Failure } from '../contract/errors.ts'
import { methodsByPath } from '../contract/operations.ts'
import { toPreflightHeaders } from './cors.ts'
import { sendFailure } from './failures.ts'

const patterns = [...methodsByPath].map(([path, methods]) => ({
  pattern: new RegExp(`^${path.replaceAll('.', '\\.').replace('{id}', '[^/]+')}$`),
  allow: methods.join(', '),
}))
const everyMethod = [...new Set([...methodsByPath.values()].flat())].sort().join(', ')

/** Answers what has no handler: OPTIONS on any known path, a method that the path does not know, an unknown path. */
export function answerUnrouted(request: FastifyRequest, reply: FastifyReply): void {
  const { method, url } = request
  const allow = findAllowed(decodeURI(url.split('?', 1)[0] ?? ''))
  if (allow === undefined) {
    sendFailure(reply, new Failure(40400, 'There is nothing at this path. See /docs.'))
  } else if (method === 'OPTIONS') {
    const isPreflight = request.headers['access-control-request-method'] !== undefined
    reply.code(204).header('Allow', allow)
    reply.headers(isPreflight ? toPreflightHeaders(allow) : {}).send()
  } else {
    const message = `The method ${method} is not known here. Allowed: ${allow}.`
    sendFailure(reply, new Failure(40500, message, { headers: { Allow: allow } }))
  }
}

function findAllowed(path: string): string | undefined {
  return path === '*' ? everyMethod : patterns.find(({ pattern }) => pattern.test(path))?.allow
}
