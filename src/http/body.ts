import type { IncomingMessage, ServerResponse } from 'node:http'
import { Failure } from '../contract/errors.ts'
import { limits } from '../contract/limits.ts'
import { isBlank, parseBody } from '../json/parse.ts'
import { malformed, orFail } from './failures.ts'

const token = "[\\w!#$%&'*+.^`|~-]+"
const typePattern = /[ \t]*application\/json/iy
/** A semicolon and the parameter behind it, if there is one. */
const parameterPattern = new RegExp(
  `[ \\t]*;[ \\t]*(?:(${token})=(?:(${token})|"((?:[^"\\\\]|\\\\.)*)"))?`,
  'y',
)

type Take<Value> = (value: Value) => void

/** Reads the body of a request as JSON. What it claims to be is judged before a byte of it is read. */
export function readJson(
  request: IncomingMessage,
  response: ServerResponse,
  take: Take<unknown>,
  fail: Take<unknown>,
): void {
  const { headers } = request
  const type = headers['content-type']
  if (type !== undefined && !isJson(type)) throw notJsonType()
  const encoding = headers['content-encoding']
  if (encoding !== undefined && encoding.toLowerCase() !== 'identity') {
    throw new Failure(41500, 'The body must be sent without a Content-Encoding.')
  }
  const isTooLarge = Number(headers['content-length']) > limits.bodyBytes
  if (isTooLarge) throw type === undefined ? notJsonType() : tooLarge()
  askForBody(request, response)

  function parse(bytes: Buffer): unknown {
    // A body that says nothing is missing; one that says something has to say what it is.
    if (type === undefined && !isBlank(bytes)) throw notJsonType()
    return parseBody(bytes)
  }

  const takeBytes = orFail((bytes: Buffer) => take(parse(bytes)), fail)
  if (isAbsent(request)) takeBytes(Buffer.alloc(0))
  else readBytes(request, takeBytes, fail)
}

/** Lets a body pass that nothing is done with. It may be broken: that shall be known before anything is done. */
export function skipBody(
  request: IncomingMessage,
  response: ServerResponse,
  take: Take<undefined>,
  fail: Take<unknown>,
): void {
  if (isAbsent(request)) {
    take(undefined)
    return
  }
  askForBody(request, response)
  let isOver = false
  request.on('end', () => {
    isOver = true
    take(undefined)
  })
  request.on('error', () => {
    if (!isOver) fail(endedEarly())
  })
  request.resume()
}

/** Of a body that is not there Node does not tell that it has ended. */
function isAbsent({ headers }: IncomingMessage): boolean {
  return headers['transfer-encoding'] === undefined && !Number(headers['content-length'])
}

function askForBody({ headers, httpVersion }: IncomingMessage, response: ServerResponse): void {
  if (headers.expect !== undefined && httpVersion === '1.1') response.writeContinue()
}

/** Whether a media type is JSON in UTF-8. Parameters other than `charset` change nothing and are ignored. */
export function isJson(mediaType: string): boolean {
  if (mediaType === 'application/json') return true
  typePattern.lastIndex = 0
  if (!typePattern.test(mediaType)) return false
  const charsets: string[] = []
  parameterPattern.lastIndex = typePattern.lastIndex
  let end = typePattern.lastIndex
  for (
    let match = parameterPattern.exec(mediaType);
    match;
    match = parameterPattern.exec(mediaType)
  ) {
    const [, name = '', plain, quoted = ''] = match
    if (name.toLowerCase() === 'charset') charsets.push((plain ?? quoted).toLowerCase())
    end = parameterPattern.lastIndex
  }
  const isWhole = /^[ \t]*$/.test(mediaType.slice(end))
  return isWhole && charsets.length <= 1 && charsets.every((charset) => charset === 'utf-8')
}

function readBytes(request: IncomingMessage, take: Take<Buffer>, fail: Take<unknown>): void {
  const chunks: Buffer[] = []
  let length = 0
  let isOver = false

  request.on('data', (chunk: Buffer) => {
    // The rest flows by unread, so that the client, which is still sending, can read the answer.
    if (isOver) return
    chunks.push(chunk)
    length += chunk.length
    if (length > limits.bodyBytes) end(() => fail(tooLarge()))
  })
  request.on('end', () =>
    end(() => take(chunks.length === 1 ? (chunks[0] as Buffer) : Buffer.concat(chunks))),
  )
  request.on('error', () => end(() => fail(endedEarly())))

  /** A connection that is lost when the body is over is no fault of the body. */
  function end(report: () => void): void {
    if (isOver) return
    isOver = true
    report()
    chunks.length = 0
  }
}

function notJsonType(): Failure {
  return new Failure(41500, 'The header Content-Type must be "application/json", in UTF-8.')
}

function tooLarge(): Failure {
  return new Failure(41300, `The body must have at most ${limits.bodyBytes} bytes.`)
}

function endedEarly(): Failure {
  return malformed('The connection ended before the body did.')
}
