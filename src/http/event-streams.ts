import { Failure } from '../contract/errors.ts'
import { eventStreamType } from '../contract/formats.ts'
import { limits, type Timeouts } from '../contract/limits.ts'
import type { JournalReader, SharedPage } from '../journal/reader.ts'
import { toEventJson } from '../json/to-json.ts'
import type { JournalEvent, Position } from '../store/store.ts'
import { type BodyStream, type Exchange, type Headers, joinFields, recordAnswer } from './answer.ts'

/** The streams of a process. */
export interface EventStreams {
  /** A stream of the changes after a position. Sending it fails if there are too many. */
  from(begin: Position): BodyStream
  /** Ends every stream, and every new one right after its beginning. */
  endAll(): void
}

/** A stream that is being sent. */
interface OpenStream {
  readonly tokenId: string | undefined
  readonly token: string
  readonly verifyToken: () => unknown
  /** Ends it after a whole event, or cuts it if its client does not read. */
  end(): void
  comment(): void
  /** Cuts it if its client has not read for too long. */
  checkReader(): void
}

/** How often tokens and readers are checked. */
const checkMs = 250
/** A client that reads nothing for this long while 1 MiB waits for it is cut. */
const fullMs = 1_000
const comment = Buffer.from(':\n\n')

export function buildEventStreams(reader: JournalReader, timeouts: Timeouts): EventStreams {
  const streams = new Set<OpenStream>()
  let isEnding = false
  let checks: NodeJS.Timeout | undefined
  let comments: NodeJS.Timeout | undefined

  function requireRoom(tokenId: string | undefined): void {
    const { eventStreams, eventStreamsOfToken } = limits
    if (streams.size >= eventStreams) throw tooManyStreams('The service', eventStreams)
    const own = [...streams].filter((stream) => stream.tokenId === tokenId)
    if (own.length >= eventStreamsOfToken) throw tooManyStreams('This token', eventStreamsOfToken)
  }

  function check(): void {
    for (const stream of streams) stream.checkReader()
    const byToken = Map.groupBy(streams, ({ token }) => token)
    for (const sharing of byToken.values()) {
      const [{ verifyToken }] = sharing as [OpenStream]
      Promise.try(verifyToken).catch(() => {
        for (const stream of sharing) stream.end()
      })
    }
  }

  function add(stream: OpenStream): void {
    streams.add(stream)
    checks ??= setInterval(check, checkMs)
    comments ??= setInterval(() => {
      for (const one of streams) one.comment()
    }, timeouts.commentMs)
  }

  function remove(stream: OpenStream): void {
    streams.delete(stream)
    if (streams.size > 0) return
    clearInterval(checks)
    clearInterval(comments)
    checks = undefined
    comments = undefined
  }

  async function sendFrom(
    begin: Position,
    exchange: Exchange,
    headers: Headers,
    verifyToken: () => unknown,
  ): Promise<void> {
    const { request, response } = exchange
    if (!isEnding) requireRoom(exchange.tokenId)
    // Node's time limit is shorter than ours, and starts again with every write.
    request.socket.setTimeout(0)
    const writtenBefore = request.socket.bytesWritten
    const own = {
      ...headers,
      'Content-Type': eventStreamType,
      'X-Accel-Buffering': 'no',
      Connection: 'close',
    }
    response.writeHead(200, joinFields(exchange, own))
    const start = `id: ${begin}\nretry: 1000\n\n`
    if (request.method === 'HEAD') response.end()
    // A refusal would be final for some clients: an EventSource never reconnects after a 503.
    else if (isEnding) response.end(start)
    else {
      response.write(start)
      const stream = openStream(exchange, verifyToken)
      add(stream)
      // A client that leaves ends its side. It would keep its slot until the next comment fails.
      if (request.socket.readableEnded) response.end()
      else request.socket.once('end', stream.end)
      await sendPages(exchange, begin).finally(() => remove(stream))
    }
    recordAnswer(exchange, 200, request.socket.bytesWritten - writtenBefore)
  }

  /** Sends changes until the response is closed. */
  async function sendPages({ response }: Exchange, begin: Position): Promise<void> {
    const left = new AbortController()
    const { signal } = left
    let resume: () => void = () => {}
    const drained = () =>
      new Promise<void>((resolve) => {
        resume = resolve
      })
    response.on('drain', () => resume())
    const closed = new Promise<void>((resolve) => {
      response.once('close', () => {
        left.abort()
        resume()
        resolve()
      })
    })
    if (response.closed) return
    for await (const page of reader.follow(begin, signal)) {
      if (!isOpen(response)) break
      if (typeof page === 'string') {
        // The client reconnects with its last position, and is then answered 410.
        response.destroy()
        break
      }
      const isTaken = response.write(toBytes(page))
      // A client that is behind gets pages at its own pace. For a live one, 1 MiB may wait.
      const room = page.isLast ? limits.eventBytesWaiting : 0
      if (!isTaken && response.writableLength > room) await drained()
    }
    await closed
  }

  function openStream(
    { request, response, tokenId, countUnread }: Exchange,
    verifyToken: () => unknown,
  ): OpenStream {
    let unsent = 0
    let idleMs = 0
    const isWaiting = () => response.writableLength > 0
    return {
      tokenId,
      token: request.headers.authorization ?? '',
      verifyToken,
      end: () => void (isWaiting() ? response.destroy() : response.end()),
      comment() {
        if (!isWaiting() && isOpen(response)) response.write(comment)
      },
      checkReader() {
        const left = response.writableLength
        // Counted in checks, not by the clock: while the process is suspended, no client can read.
        idleMs = isWaiting() && left === unsent ? idleMs + checkMs : 0
        unsent = left
        if (left > 0) countUnread(response, left)
        const isFull = left > limits.eventBytesWaiting
        if (idleMs > (isFull ? fullMs : timeouts.unreadMs)) response.destroy()
      },
    }
  }

  return {
    from:
      (begin) =>
      (...call) =>
        sendFrom(begin, ...call),
    endAll() {
      isEnding = true
      for (const stream of streams) stream.end()
    },
  }
}

/** Whether it can be written to. A response that has ended closes a little later. */
function isOpen(response: Exchange['response']): boolean {
  return !response.writableEnded && !response.destroyed
}

/** The bytes of a page, made by the first follower that needs them. */
function toBytes(page: SharedPage): Buffer {
  page.bytes ??= Buffer.from(page.events.map(toFrame).join(''))
  return page.bytes
}

function toFrame(event: JournalEvent): string {
  return `id: ${event.position}\nevent: ${event.type}\ndata: ${toEventJson(event)}\n\n`
}

function tooManyStreams(who: string, count: number): Failure {
  return new Failure(
    50300,
    `${who} has ${count} streams of events already. Try again later, or read pages.`,
    { reason: 'event_streams' },
  )
}
