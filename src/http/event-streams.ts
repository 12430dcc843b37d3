import { Failure } from '../contract/errors.ts'
import { eventStreamType } from '../contract/events.ts'
import { limits, type Timeouts } from '../contract/limits.ts'
import type { Position, Store } from '../store/store.ts'
import { countUnsent } from './connections/unsent.ts'
import { buildEventFeed, type Follower, type StreamBytes, toStreamBytes } from './event-feed.ts'
import { type Exchange, type Headers, joinFields, recordAnswer } from './exchange.ts'

/** A stream of events that is to be sent. */
export interface EventStream {
  /** Sends events until the client leaves, or the stream ends. */
  sendTo(exchange: Exchange, headers: Headers, verifyToken: () => unknown): Promise<void>
}

/** The streams of a process. */
export interface EventStreams {
  /** Reserves a stream of the changes after a position, which has to be sent. */
  reserve(begin: Position): EventStream
  /** Ends every stream, and each new one as soon as it has begun. */
  endAll(): void
}

/** A stream that is being sent. */
interface OpenStream {
  readonly token: string
  readonly verifyToken: () => unknown
  /** Ends it as a whole, or breaks it off when its client does not read. */
  end(): void
  comment(): void
  /** Cuts it when its client has not read for too long. */
  checkReader(): void
}

/** How often tokens and readers are looked at. */
const lookMs = 250
/** A client for which 1 MiB waits, and that reads nothing for this long, is cut. */
const fullMs = 1_000
const comment = toStreamBytes(':\n\n')

export function buildEventStreams(
  store: Store,
  timeouts: Timeouts,
  maxStreams: number = limits.eventStreams,
): EventStreams {
  const feed = buildEventFeed(store)
  const streams = new Set<OpenStream>()
  let reserved = 0
  let isEnding = false
  let looks: NodeJS.Timeout | undefined
  let comments: NodeJS.Timeout | undefined

  function look(): void {
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
    looks ??= setInterval(look, lookMs)
    comments ??= setInterval(() => {
      for (const one of streams) one.comment()
    }, timeouts.commentMs)
  }

  function remove(stream: OpenStream): void {
    streams.delete(stream)
    if (streams.size > 0) return
    clearInterval(looks)
    clearInterval(comments)
    looks = undefined
    comments = undefined
  }

  async function sendFrom(
    begin: Position,
    exchange: Exchange,
    headers: Headers,
    verifyToken: () => unknown,
  ): Promise<void> {
    const { request, response } = exchange
    // Node's limit is shorter than ours, and starts again with every write.
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
    // A client that meets a refusal may never come back: an EventSource does not after a 503.
    else if (isEnding) response.end(start)
    else {
      const { follower, stream, write } = openStream(exchange, begin, verifyToken)
      const closed = new Promise((resolve) => response.once('close', resolve))
      request.socket.on('drain', () => feed.goOn(follower))
      // Node.js holds a first write to the response back, and events would come before it.
      request.socket.cork()
      response.flushHeaders()
      write(toStreamBytes(start))
      request.socket.uncork()
      add(stream)
      feed.follow(follower)
      // A client that has left ends its side, and would hold its place until the next comment.
      if (request.socket.readableEnded) response.end()
      else request.socket.once('end', stream.end)
      if (!response.closed) await closed
      feed.leave(follower)
      remove(stream)
    }
    recordAnswer(exchange, 200, request.socket.bytesWritten - writtenBefore)
  }

  function openStream(exchange: Exchange, begin: Position, verifyToken: () => unknown) {
    const { request, response } = exchange
    const { socket } = request
    let missedBytes = 0
    let unsent = 0
    let readAt = performance.now()
    const isWaiting = () => response.writableLength > 0
    // Past the response, whose writes wait for the next tick, cost twice as much and would frame
    // the same bytes again for each client. A client of HTTP/1.0 knows no chunks.
    const write = ({ chunk, content }: StreamBytes) =>
      socket.write(response.chunkedEncoding ? chunk : content)

    const follower: Follower = {
      position: begin,
      take(events) {
        missedBytes = 0
        // A stream that has ended closes a little later.
        if (response.writableEnded) return false
        return write(events) || socket.writableLength === 0
      },
      miss(bytes) {
        missedBytes += bytes
      },
      cut: () => response.destroy(),
    }
    const stream: OpenStream = {
      token: request.headers.authorization ?? '',
      verifyToken,
      end: () => void (isWaiting() ? response.destroy() : response.end()),
      comment() {
        if (!isWaiting() && !response.writableEnded) write(comment)
      },
      checkReader() {
        const now = performance.now()
        const left = countUnsent(socket)
        if (!isWaiting() || left !== unsent) readAt = now
        unsent = left
        const isFull = missedBytes + response.writableLength > limits.eventBytesWaiting
        if (now - readAt > (isFull ? fullMs : timeouts.unreadMs)) response.destroy()
      },
    }
    return { follower, stream, write }
  }

  return {
    reserve(begin) {
      if (reserved === maxStreams && !isEnding) throw tooManyStreams(maxStreams)
      reserved++
      return {
        sendTo: (...call) => sendFrom(begin, ...call).finally(() => reserved--),
      }
    },
    endAll() {
      isEnding = true
      for (const stream of streams) stream.end()
    },
  }
}

function tooManyStreams(max: number): Failure {
  return new Failure(
    50300,
    `The service is sending ${max} streams of events already. Try again later, or read pages.`,
    { reason: 'event_streams' },
  )
}
