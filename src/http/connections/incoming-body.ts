import type { IncomingMessage } from 'node:http'

/** Whether no body comes with a request. Node emits no `end` then. */
export function hasNoBody({ headers }: IncomingMessage): boolean {
  return headers['transfer-encoding'] === undefined && !Number(headers['content-length'])
}

/** Discards the rest of a body. Node's own way is the cheapest where it comes in tiny chunks. */
export function discardRest(request: IncomingMessage & { _dump?: () => void }): void {
  request.removeAllListeners('data')
  request._dump?.()
}
