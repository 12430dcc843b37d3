import { once } from 'node:events'
import type { ServerResponse } from 'node:http'
import { Failure } from '../contract/errors.ts'
import { eventStreamType } from '../contract/formats.ts'
import { limits, type Timeouts } from '../contract/limits.ts'
import type { JournalReader, SharedPage } from '../journal/reader.ts'
import { toEventJson } from '../json/plant-json.ts'
import type { JournalEvent, Position } from '../store/store.ts'
import { type BodyStream, type Exchange, joinFields, recordAnswer } from './answer.ts'

export type EventStreams = ReturnType<typeof buildEventStreams>

/** How often tokens and what is unread are checked. */
const checkMs = 250
/** How long a live stream may have more than `limits.eventBytesWaiting` unread. */
const fullMs = 1_000
const comment = Buffer.from(':\n\n')

/** Builds the streams of a process. */
export function buildEventStreams(reader: JournalReader, timeouts: Timeouts) {
  /** The streams that are being sent, and how to verify the token of each. */
  const streams = new Map<Exchange, () => unknown>()
  let isEnding = false
  let checks: NodeJS.Timeout | undefined

  function requireRoom(tokenId: string | undefined): void {
    const { eventStreams, eventStreamsOfToken } = limits
    if (streams.size >= eventStreams) throw tooManyStreams('The service', eventStreams)
    const own = [...streams.keys()].filter((exchange) => exchange.tokenId === tokenId)
    if (own.length >= eventStreamsOfToken) throw tooManyStreams('This token', eventStreamsOfToken)
  }

  function check(): void {
    for (const { response, countUnread } of streams.keys()) {
      // What is counted for a closed response would stay counted.
      if (!response.closed) countUnread(response, response.writableLength)
    }
    const byToken = Map.groupBy(streams, ([{ request }]) => request.headers.authorization)
    for (const sharing of byToken.values()) {
      const [[, verifyToken]] = sharing as [[Exchange, () => unknown]]
      Promise.try(verifyToken).catch(() => {
        for (const [exchange] of sharing) end(exchange)
      })
    }
  }

  function remove(exchange: Exchange): void {
    streams.delete(exchange)
    if (streams.size > 0) return
    clearInterval(checks)
    checks = undefined
  }

  async function sendFrom(
    begin: Position,
    ...[exchange, headers, verifyToken]: Parameters<BodyStream>
  ): Promise<void> {
    const { request, response } = exchange
    if (!isEnding) requireRoom(exchange.tokenId)
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
      streams.set(exchange, verifyToken)
      checks ??= setInterval(check, checkMs)
      const comments = setInterval(() => {
        if (response.writableLength === 0 && isWritable(response)) response.write(comment)
      }, timeouts.commentMs)
      // A client that leaves ends its side. It would keep its slot until the next comment fails.
      if (request.socket.readableEnded) response.end()
      else request.socket.once('end', () => end(exchange))
      await sendPages(exchange, begin).finally(() => {
        clearInterval(comments)
        remove(exchange)
      })
    }
    recordAnswer(exchange, 200, request.socket.bytesWritten - writtenBefore)
  }

  /** Sends changes until the response is closed. */
  async function sendPages({ response }: Exchange, begin: Position): Promise<void> {
    const left = new AbortController()
    const { signal } = left
    response.once('close', () => left.abort())
    if (response.closed) return
    for await (const page of reader.follow(begin, signal)) {
      if (!isWritable(response)) break
      if (typeof page === 'string') {
        // The client reconnects with its last position, and is then answered 410.
        response.destroy()
        break
      }
      const isTaken = response.write(toBytes(page))
      // A client that is behind gets pages at its own pace. A live one may leave 1 MiB unread, and
      // more for a moment.
      const room = page.isLast ? limits.eventBytesWaiting : 0
      if (isTaken || response.writableLength <= room) continue
      const patience = page.isLast ? AbortSignal.any([signal, AbortSignal.timeout(fullMs)]) : signal
      await once(response, 'drain', { signal: patience }).catch(() => {})
      if (page.isLast && response.writableLength > room) response.destroy()
    }
    if (!response.closed) await once(response, 'close')
  }

  return {
    /** A stream of the changes after a position. Sending it fails if there are too many. */
    from:
      (begin: Position): BodyStream =>
      (...answer) =>
        sendFrom(begin, ...answer),
    /** Ends every stream, and every new one right after its beginning. */
    endAll(): void {
      isEnding = true
      for (const exchange of streams.keys()) end(exchange)
    },
  }
}

/** Ends a stream after a whole event, or cuts it if its client does not read. */
function end({ response }: Exchange): void {
  if (response.writableLength > 0) response.destroy()
  else response.end()
}

/** Whether it can be written to. A response that has ended closes a little later. */
function isWritable(response: ServerResponse): boolean {
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
