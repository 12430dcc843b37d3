import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { Failure } from '../../contract/errors.ts'
import { limits, type Timeouts } from '../../contract/limits.ts'
import {
  awaitsContinue,
  beginReading,
  bodyEndedEarly,
  discardRest,
  hasNoBody,
} from './incoming-body.ts'

/** A body of any length, read as it comes. */
export interface LongBody {
  /** Its bytes. If its client fails, they come first, and then the failure is thrown. */
  readonly chunks: AsyncIterable<Buffer>
  /** Aborts with a `Failure` when the body may not be used any more. */
  readonly signal: AbortSignal
  /** Ends the use of the body. */
  end(failure: Failure): void
}

/** While this much waits to be taken, nothing more is read from the connection. */
const maxHeldBytes = 64 * 1024
/** How often the token of the request is checked. */
const tokenCheckMs = 50

/** How to finish the body that is being received on a connection, when its bytes are broken. */
const bodies = new WeakMap<Socket, (failure: Failure) => void>()

/**
 * Opens the body of a request. It has time limits of its own, and is released with the response:
 * the rest of it is discarded then, so that the next request can be read.
 */
export function openLongBody(
  request: IncomingMessage,
  response: ServerResponse,
  timeouts: Timeouts,
  verifyToken: () => unknown,
): LongBody {
  const { socket } = request
  const controller = new AbortController()
  const { signal } = controller
  let pieces: Buffer[] = []
  let heldBytes = 0
  let state: 'coming' | 'whole' | Failure = hasNoBody(request) ? 'whole' : 'coming'
  let wake = () => {}
  let mustContinue = awaitsContinue(request)
  const patience = buildPatience(timeouts, () => finish(tooSlow(timeouts)))

  function finish(next: 'whole' | Failure): void {
    if (state === 'coming') state = next
    wake()
  }

  function end(failure: Failure): void {
    controller.abort(failure)
    wake()
  }

  async function* read(): AsyncGenerator<Buffer> {
    for (;;) {
      signal.throwIfAborted()
      if (heldBytes > 0) {
        const chunk = pieces.length === 1 ? (pieces[0] as Buffer) : Buffer.concat(pieces)
        pieces = []
        heldBytes = 0
        request.resume()
        yield chunk
      } else if (state === 'whole') return
      else if (state !== 'coming') throw state
      else {
        if (mustContinue) response.writeContinue()
        mustContinue = false
        patience.begin()
        await new Promise<void>((resolve) => {
          wake = resolve
        })
        patience.pause()
      }
    }
  }

  const deadline = setTimeout(end, timeouts.importMs, tooLong(timeouts))
  const watch = setInterval(() => Promise.try(verifyToken).catch(end), tokenCheckMs)
  if (state === 'coming') {
    bodies.set(socket, finish)
    beginReading(request)
    request.on('data', (chunk: Buffer) => {
      pieces.push(chunk)
      heldBytes += chunk.length
      patience.note(chunk.length)
      if (heldBytes >= maxHeldBytes) request.pause()
      wake()
    })
    request.on('end', () => {
      bodies.delete(socket)
      finish('whole')
    })
    request.on('error', () => finish(bodyEndedEarly()))
  }
  response.once('close', () => {
    clearTimeout(deadline)
    clearInterval(watch)
    patience.pause()
    finish(bodyEndedEarly())
    if (request.complete) return
    // The client may still be sending. Node's own limit on a request has been ignored.
    discardRest(request)
    const cut = setTimeout(() => socket.destroy(), timeouts.requestTimeoutMs)
    const forget = () => {
      clearTimeout(cut)
      bodies.delete(socket)
    }
    request.once('close', forget)
    // Node does not close a discarded request with its connection.
    socket.once('close', forget)
  })
  return { chunks: read(), signal, end }
}

/** Tells a body that is being received that its bytes are broken. Returns whether there is one. */
export function breakLongBody(socket: Socket, failure: Failure): boolean {
  const fail = bodies.get(socket)
  fail?.(failure)
  return fail !== undefined
}

/** Whether a body with time limits of its own is being received. */
export function hasLongBody(socket: Socket): boolean {
  return bodies.has(socket)
}

/** Bounds the wait for a client, which must send a part within the time for a whole request. */
function buildPatience({ requestTimeoutMs }: Timeouts, onTimeout: () => void) {
  let leftMs = requestTimeoutMs
  let bytes = 0
  let beganAt = 0
  let timer: NodeJS.Timeout | undefined

  return {
    begin(): void {
      beganAt = performance.now()
      timer = setTimeout(onTimeout, leftMs)
    },
    pause(): void {
      if (timer === undefined) return
      clearTimeout(timer)
      timer = undefined
      leftMs -= performance.now() - beganAt
    },
    note(received: number): void {
      bytes += received
      if (bytes < limits.importBytesInTime) return
      bytes = 0
      leftMs = requestTimeoutMs
      beganAt = performance.now()
    },
  }
}

function tooSlow({ requestTimeoutMs }: Timeouts): Failure {
  return new Failure(
    40800,
    `The client must send ${limits.importBytesInTime} bytes, or the rest, within ${requestTimeoutMs / 1000} s.`,
  )
}

function tooLong({ importMs }: Timeouts): Failure {
  return new Failure(40800, `The import must end within ${importMs / 1000} s.`)
}
