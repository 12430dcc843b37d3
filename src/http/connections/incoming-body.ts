import type { IncomingMessage } from 'node:http'
import { endPace, mayReadOn } from './reading-pace.ts'

/** Node's own: its parser pushes each chunk of a body, and null at its end. */
type Incoming = IncomingMessage & {
  push?: (chunk: Buffer | null) => boolean
  _dumpAndCloseReadable?: () => void
}

export interface BodyListener {
  onChunk(chunk: Buffer): void
  onEnd(): void
  /** The connection ended before the body did. */
  onLost(): void
}

/** Whether the client waits for `100 Continue` before it sends the body. */
export function awaitsContinue({ headers, httpVersion }: IncomingMessage): boolean {
  return headers.expect !== undefined && httpVersion === '1.1'
}

/** Whether no body comes with a request. Node emits no `end` then. */
export function hasNoBody({ headers }: IncomingMessage): boolean {
  return headers['transfer-encoding'] === undefined && !Number(headers['content-length'])
}

/** Passes on the chunks of a body, at the pace of all bodies. */
export function listenToBody(request: Incoming, { onChunk, onEnd, onLost }: BodyListener): void {
  let count = 0
  request.on('error', onLost)
  if (request.complete || request.readableLength > 0 || !request._dumpAndCloseReadable) {
    request.on('data', (chunk: Buffer) => {
      onChunk(chunk)
      if (!mayReadOn(request, chunk, ++count)) request.pause()
    })
    request.on('end', onEnd)
    return
  }
  // Nothing has come yet. Chunks are taken from the parser as they are: on their way through the
  // stream, with its events and ticks, they would take a tenth of the CPU time of a create.
  request.push = (chunk) => {
    if (chunk === null) {
      endPace(request.socket)
      request._dumpAndCloseReadable?.()
      onEnd()
      return true
    }
    onChunk(chunk)
    return mayReadOn(request.socket, chunk, ++count)
  }
}

/** Discards the body of a request that is answered without reading it. */
export function discardUnread(request: Incoming): void {
  if (request.complete || hasNoBody(request)) return
  if (request.readableFlowing === null) discardRest(request)
}

/** Discards the rest of a body, at the pace of all bodies. Node would as fast as it comes. */
export function discardRest(request: Incoming): void {
  let count = 0
  request.removeAllListeners('data')
  request.resume()
  request.push = (chunk) => {
    if (chunk !== null) return mayReadOn(request.socket, chunk, ++count)
    endPace(request.socket)
    // The stream takes its end itself: Node closes the request after that.
    Reflect.deleteProperty(request, 'push')
    return request.push?.(null) ?? true
  }
}
