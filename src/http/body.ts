import { isUtf8 } from 'node:buffer'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { Failure } from '../contract/errors.ts'
import { limits } from '../contract/limits.ts'
import {
  awaitsContinue,
  discardRest,
  hasNoBody,
  isTooFine,
  listenToBody,
  tooManyChunks,
} from './node/bodies.ts'

const mediaType = 'application/json'

/** Reads a body in JSON as text. Its headers are checked before it is read. */
export function readJson(request: IncomingMessage, response: ServerResponse): Promise<string> {
  const { headers } = request
  const type = headers['content-type']
  if (type !== undefined && !isMediaType(type, mediaType)) throw otherMediaType(mediaType)
  const encoding = headers['content-encoding']
  if (encoding !== undefined && encoding.toLowerCase() !== 'identity') {
    throw new Failure(41500, 'The body must be sent without a Content-Encoding.')
  }
  const isTooLarge = Number(headers['content-length']) > limits.bodyBytes
  if (isTooLarge) throw type === undefined ? otherMediaType(mediaType) : tooLarge()
  return readBody(request, response, (bytes) => {
    // A blank body counts as missing. Any other body needs a media type.
    if (type === undefined && !isBlank(bytes)) throw otherMediaType(mediaType)
    return decodeBody(bytes)
  })
}

/** Reads and discards the body, so that a broken one is refused before anything is done. */
export async function discardBody(
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  if (Number(request.headers['content-length']) > limits.bodyBytes) throw tooLarge()
  await readBody(request, response, () => undefined)
}

const tokenPattern = "[\\w!#$%&'*+.^`|~-]+"
/** A semicolon and the parameter after it, if there is one. */
const parameterPattern = new RegExp(
  `[ \\t]*;[ \\t]*(?:(${tokenPattern})=(?:(${tokenPattern})|"((?:[^"\\\\]|\\\\.)*)"))?`,
  'gy',
)

/** Whether a `Content-Type` is this media type in UTF-8. Other parameters are ignored, up to 32. */
export function isMediaType(contentType: string, mediaType: string): boolean {
  if (contentType === mediaType) return true
  const start = contentType.search(/[^ \t]/)
  let end = start + mediaType.length
  if (contentType.slice(start, end).toLowerCase() !== mediaType) return false
  const charsets: string[] = []
  let count = 0
  parameterPattern.lastIndex = end
  for (const [text, name = '', plain, quoted = ''] of contentType.matchAll(parameterPattern)) {
    if (++count > limits.mediaTypeParameters) return false
    if (name.toLowerCase() === 'charset') charsets.push((plain ?? quoted).toLowerCase())
    end += text.length
  }
  const isWhole = /^[ \t]*$/.test(contentType.slice(end))
  return isWhole && charsets.length <= 1 && charsets.every((charset) => charset === 'utf-8')
}

/** The failure of a body that is not declared to have this media type. */
export function otherMediaType(mediaType: string): Failure {
  return new Failure(41500, `The header Content-Type must be "${mediaType}", in UTF-8.`)
}

const whitespace = new Set(Buffer.from(' \t\r\n'))

/** Whether a body holds nothing but white space. */
export function isBlank(bytes: Buffer): boolean {
  for (let at = 0; at < bytes.length; at++) {
    if (!whitespace.has(bytes[at] as number)) return false
  }
  return true
}

/** The text of a body. */
export function decodeBody(bytes: Buffer): string {
  if (isBlank(bytes)) throw new Failure(40002, 'The body is missing: send a JSON object.')
  if (!isUtf8(bytes)) throw new Failure(40001, 'Invalid JSON: the body is not UTF-8.')
  return bytes.toString('utf8')
}

/** Reads a body, and resolves with what `judge` makes of its bytes. */
function readBody<Value>(
  request: IncomingMessage,
  response: ServerResponse,
  judge: (bytes: Buffer) => Value,
): Promise<Value> {
  if (awaitsContinue(request) && !hasNoBody(request)) response.writeContinue()
  return new Promise((resolve, reject) => {
    let bytes: Buffer = noBytes
    let chunks = 0

    function end(): void {
      try {
        resolve(judge(bytes))
      } catch (error) {
        reject(error)
      }
    }

    function fail(failure: Failure): void {
      reject(failure)
      // The client is still sending, and stops only once it has read the answer.
      discardRest(request)
    }

    if (hasNoBody(request)) {
      end()
      return
    }
    listenToBody(request, {
      onChunk(chunk) {
        // The first chunk is nearly always the last.
        bytes = ++chunks === 1 ? chunk : Buffer.concat([bytes, chunk])
        if (bytes.length > limits.bodyBytes) fail(tooLarge())
        else if (isTooFine(chunks, bytes.length)) fail(tooManyChunks())
        return true
      },
      onEnd: end,
      onLost: fail,
    })
  })
}

const noBytes = Buffer.alloc(0)

function tooLarge(): Failure {
  return new Failure(41300, `The body must have at most ${limits.bodyBytes} bytes.`)
}
