import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { Failure } from '../contract/errors.ts'
import { limits, type Timeouts } from '../contract/limits.ts'
import {
  awaitsContinue,
  bodyEndedEarly,
  discardRest,
  hasNoBody,
  isTooFine,
  listenToBody,
  tooManyChunks,
} from './node/messages.ts'

/** A body of any length, read as it comes. */
export interface LongBody {
  /** Its bytes. If the client fails, those before that come first, then the failure is thrown. */
  readonly chunks: AsyncIterable<Buffer>
  /** Aborts with a `Failure` when the body must no longer be used. */
  readonly signal: AbortSignal
  /** How many bytes have come. */
  received(): number
  /** Ends the use of the body. */
  end(failure: Failure): void
}

/** While this much waits to be taken, nothing more is read from the connection. */
const maxHeldBytes = 64 * 1024
/** How often the token of the request is checked. */
const tokenCheckMs = 50

/** The connections on which such a body is being received. */
const receiving = new WeakSet<Socket>()

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
  let held: Buffer[] = []
  let heldBytes = 0
  let bytes = 0
  let ending: 'whole' | Failure | undefined = hasNoBody(request) ? 'whole' : undefined
  let wake = () => {}

  function finish(how: 'whole' | Failure): void {
    ending ??= how
    wake()
  }

  function end(failure: Failure): void {
    controller.abort(failure)
    wake()
  }

  async function* read(): AsyncGenerator<Buffer> {
    if (ending === undefined && awaitsContinue(request)) response.writeContinue()
    let bytesInTime = 0
    let leftMs = timeouts.requestTimeoutMs
    for (;;) {
      signal.throwIfAborted()
      if (heldBytes > 0) {
        const chunk = held.length === 1 ? (held[0] as Buffer) : Buffer.concat(held)
        held = []
        heldBytes = 0
        bytesInTime += chunk.length
        if (!request.complete) socket.resume()
        yield chunk
      } else if (ending === 'whole') return
      else if (ending !== undefined) throw ending
      else {
        if (bytesInTime >= limits.importBytesInTime) {
          bytesInTime = 0
          leftMs = timeouts.requestTimeoutMs
        }
        const beganAt = performance.now()
        const timer = setTimeout(finish, leftMs, tooSlow(timeouts))
        await new Promise<void>((resolve) => {
          wake = resolve
        })
        clearTimeout(timer)
        leftMs -= performance.now() - beganAt
      }
    }
  }

  const deadline = setTimeout(end, timeouts.importMs, tooLong(timeouts))
  const watch = setInterval(() => Promise.try(verifyToken).catch(end), tokenCheckMs)
  if (ending === undefined) {
    let count = 0
    receiving.add(socket)
    listenToBody(request, {
      onChunk(chunk) {
        if (ending !== undefined) return true
        bytes += chunk.length
        if (isTooFine(++count, bytes)) finish(tooManyChunks())
        else {
          held.push(chunk)
          heldBytes += chunk.length
          wake()
        }
        return heldBytes < maxHeldBytes
      },
      onEnd() {
        receiving.delete(socket)
        finish('whole')
      },
      onLost: finish,
    })
  }
  response.once('close', () => {
    clearTimeout(deadline)
    clearInterval(watch)
    finish(bodyEndedEarly())
    if (request.complete) return
    // The client may still be sending, and Node's own time limit was ignored for this request.
    discardRest(request)
    const cut = setTimeout(() => socket.destroy(), timeouts.requestTimeoutMs)
    const forget = () => {
      clearTimeout(cut)
      receiving.delete(socket)
      socket.off('close', forget)
    }
    request.once('close', forget)
    // Node does not close a discarded request with its connection.
    socket.once('close', forget)
  })
  return { chunks: read(), signal, received: () => bytes, end }
}

/** Whether a body with time limits of its own is being received. */
export function hasLongBody(socket: Socket): boolean {
  return receiving.has(socket)
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
