import type { IncomingHttpHeaders, Server, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { limits } from '../../contract/limits.ts'
import { breakOff } from './connection.ts'
import { STATUS_CODES } from './node-http.ts'

/** A longer text is sent as bytes: Node would join it with the head, and hold both in memory. */
const largeLength = 64 * 1024

/** Node's own: the head of an answer, and the time that it announces for idle connections. */
type OwnHead = ServerResponse & { _header: string; readonly _keepAliveTimeout: number }

/**
 * Sends an answer whose body takes this many bytes. Names and values of its header fields
 * alternate. The caller has checked them.
 */
export function sendWhole(
  response: ServerResponse,
  status: number,
  fields: string[],
  body: string,
  bytes: number,
): void {
  if (isUsual(response, status)) writeHead(response as OwnHead, status, fields)
  else response.writeHead(status, fields)
  // ASCII is the same in both, and Latin-1 is written faster.
  const encoding = body.length === bytes ? 'latin1' : 'utf8'
  response.end(body.length > largeLength ? Buffer.from(body, encoding) : body, encoding)
  const { socket } = response
  if (socket && socket.writableLength > 0) buildCount(response, socket)(bytes)
}

/** Whether Node would add nothing but the date and `Connection: keep-alive`. */
function isUsual({ shouldKeepAlive, req }: ServerResponse, status: number): boolean {
  return status < 300 && shouldKeepAlive && !req.headers.expect
}

/** Writes the head that Node would write. Node takes a twentieth of the time of a get for it. */
function writeHead(response: OwnHead, status: number, fields: readonly string[]): void {
  let head = `HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\n`
  for (let at = 0; at < fields.length; at += 2) head += `${fields[at]}: ${fields[at + 1]}\r\n`
  const idleSeconds = Math.floor(response._keepAliveTimeout / 1000)
  response.statusCode = status
  response._header = `${head}Date: ${toDate()}\r\nConnection: keep-alive\r\nKeep-Alive: timeout=${idleSeconds}\r\n\r\n`
}

let date = ''
let dateAt = 0

/** The current date as a header. It is made once a second. */
function toDate(): string {
  const second = Math.floor(Date.now() / 1000)
  if (second !== dateAt) {
    dateAt = second
    date = new Date(second * 1000).toUTCString()
  }
  return date
}

/** Beyond the bound, a token may still have this much, so that one slow client does not stop it. */
const freeBytes = 8 * 1024 * 1024
/** Beyond the bound, a client that reads nothing for this long is cut. */
const unreadMs = 1_000
/** How often clients are checked while the bound is exceeded. */
const checkMs = 250

/** Node's own: how much of a write the system has not taken yet. */
interface Handle {
  readonly writeQueueSize?: number
}

/** How many bytes of the current write wait to be sent. Later writes do not count. */
export function countUnsent(socket: Socket): number {
  const { _handle: handle } = socket as Socket & { readonly _handle?: Handle | null }
  return handle?.writeQueueSize ?? socket.writableLength
}

/** An answer that its client has not read, and that is held in memory for it. */
interface Unsent {
  readonly socket: Socket
  readonly key: string
  bytes: number
  /** What was left of the current write, and since when. */
  left: number
  readAt: number
}

const counts = Symbol('the unread answers of this server')

type CountedSocket = Socket & { [counts]?: Unread }

/**
 * Counts the unread answers of a server. Returns whether a token must read its answers before it
 * gets more: unread answers take too much memory, and many of them are its own.
 */
export function countUnread(server: Server): (key: string) => boolean {
  const counted = buildUnread()
  server.on('connection', (socket: CountedSocket) => {
    socket[counts] = counted
  })
  return counted.mustRead
}

/** To hash a whole JSON Web Token would cost more than everything else here. */
const keyLength = 64
const schemeLength = 'Bearer '.length

/**
 * The key by which the requests of a token take turns: the token, or the end of a long one. The
 * scheme and the white space after it may be spelled in many ways, and are left out.
 */
export function toTokenKey({ authorization = '' }: IncomingHttpHeaders): string {
  return authorization.slice(schemeLength).trim().slice(-keyLength)
}

/**
 * Counts the memory that a response holds until it is closed. Returns a function that updates the
 * count.
 */
export function buildCount(
  response: ServerResponse,
  socket: CountedSocket,
): (bytes: number) => void {
  const key = toTokenKey(response.req.headers)
  const answer: Unsent = { socket, key, bytes: 0, left: 0, readAt: 0 }
  const { resize } = socket[counts] as Unread
  response.once('close', () => resize(answer, 0))
  return (bytes) => resize(answer, bytes)
}

type Unread = ReturnType<typeof buildUnread>

function buildUnread() {
  const answers = new Set<Unsent>()
  const bytesByKey = new Map<string, number>()
  let totalBytes = 0
  let checks: NodeJS.Timeout | undefined

  function mustRead(key: string): boolean {
    return totalBytes > limits.unsentBytes && (bytesByKey.get(key) ?? 0) > freeBytes
  }

  function resize(answer: Unsent, bytes: number): void {
    const { key, socket } = answer
    const ofKey = (bytesByKey.get(key) ?? 0) + bytes - answer.bytes
    if (ofKey > 0) bytesByKey.set(key, ofKey)
    else bytesByKey.delete(key)
    totalBytes += bytes - answer.bytes
    answer.bytes = bytes
    if (bytes === 0) answers.delete(answer)
    else if (!answers.has(answer)) {
      answer.left = countUnsent(socket)
      answer.readAt = performance.now()
      answers.add(answer)
    }
    if (totalBytes > limits.unsentBytes) checks ??= setInterval(check, checkMs).unref()
  }

  /** Notes which clients read, and cuts the others while the bound is exceeded. */
  function check(): void {
    const now = performance.now()
    for (const answer of answers) {
      const left = countUnsent(answer.socket)
      if (left !== answer.left) answer.readAt = now
      answer.left = left
    }
    if (totalBytes > limits.unsentBytes) cutUnread(now)
    if (totalBytes > limits.unsentBytes) return
    clearInterval(checks)
    checks = undefined
  }

  /** Cuts clients that do not read, the largest answers first, down to half the bound. */
  function cutUnread(now: number): void {
    const unread = [...answers].filter(({ readAt }) => now - readAt >= unreadMs)
    for (const answer of unread.sort((one, other) => other.bytes - one.bytes)) {
      if (totalBytes <= limits.unsentBytes / 2) break
      resize(answer, 0)
      breakOff(answer.socket)
    }
  }

  return { mustRead, resize }
}
