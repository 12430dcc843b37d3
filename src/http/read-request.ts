import { isUtf8 } from 'node:buffer'
import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from 'node:http'
import { Failure } from '../contract/errors.ts'
import { delimiterNames } from '../contract/formats.ts'
import { limits } from '../contract/limits.ts'
import {
  conflictRules,
  latest,
  orders,
  type ParameterName,
  pageLimits,
  parameters,
  type States,
  toRequestName,
} from '../contract/parameters.ts'
import { quoteWrong } from '../contract/setting-values.ts'
import {
  expectedSearch,
  int64Range,
  isSearchable,
  isStorable,
  toPathId,
} from '../contract/values.ts'
import { toCursor } from '../journal/position.ts'
import type { Position } from '../store/store.ts'
import {
  awaitsContinue,
  discardRest,
  hasNoBody,
  isTooFine,
  listenToBody,
  tooManyChunks,
} from './node/bodies.ts'

/*
 * What a request says: its token, its parameters, its body, and what its client accepts.
 */

const scheme = 'bearer '
const usualScheme = 'Bearer '

/** The token in the header `Authorization`; empty if there is none. */
export function readBearer({ authorization = '' }: IncomingHttpHeaders): string {
  const given = authorization.slice(0, scheme.length)
  const isBearer = given === usualScheme || given.toLowerCase() === scheme
  return isBearer ? authorization.slice(scheme.length).replace(/^[ \t]+/, '') : ''
}

/** A position, or the word for the present end of the journal. */
export function readPosition(text: string): Position | typeof latest | undefined {
  return text === latest || toCursor(text) !== undefined ? text : undefined
}

export const expectedPosition = `a position of the journal, or ${latest}`

/** Reads the text of a parameter; undefined for a value that is not allowed. */
interface Reader<Value> {
  readonly read: (text: string) => Value | undefined
  readonly expected: string
}

const entityTags = `the ETag of a plant, a list of at most ${limits.entityTags}, or *`

/** How each parameter is read, and the values that it may have. */
const readers = {
  limit: buildLimit(pageLimits.max),
  exportLimit: buildLimit(parameters.exportLimit.schema.maximum),
  'on-conflict': buildChoice(conflictRules),
  'dry-run': { read: toBoolean, expected: 'true or false' },
  delimiter: buildChoice(delimiterNames),
  spreadsheet: { read: toBoolean, expected: 'true or false' },
  position: { read: readPosition, expected: expectedPosition },
  // Pages ignore it; streams check it.
  'Last-Event-ID': { read: (text) => text, expected: expectedPosition },
  after: { read: toPathId, expected: `an integer ${int64Range}` },
  tag: {
    read: (text) => (isStorable(text) ? text : undefined),
    expected: 'text without NUL characters',
  },
  name: { read: (text) => (isSearchable(text) ? text : undefined), expected: expectedSearch },
  order: buildChoice(orders),
  'If-Match': { read: (text) => toStates(text, 'strong'), expected: entityTags },
  'If-None-Match': { read: (text) => toStates(text, 'weak'), expected: entityTags },
  'Idempotency-Key': { read: toKey, expected: '1 to 255 visible ASCII characters' },
} satisfies Record<ParameterName, Reader<unknown>>

/** The parameters of a request, checked. One that was not sent is undefined. */
export type RequestParameters = {
  readonly [Name in ParameterName]: ReturnType<(typeof readers)[Name]['read']> | undefined
}

/** Builds the reader of the parameters that an operation knows; others are ignored. */
export function buildParameterReader(names: readonly ParameterName[]) {
  const inQuery = names.filter((name) => parameters[name].in === 'query')
  const inHeaders = names
    .filter((name) => parameters[name].in === 'header')
    .map((name) => ({ name, field: toRequestName(name).toLowerCase() }))

  return (url: string, headers: IncomingHttpHeaders): Partial<RequestParameters> => {
    const values: Record<string, unknown> = {}
    if (inQuery.length > 0) {
      const query = parseQuery(url)
      for (const name of inQuery) readInto(values, name, findOnly(name, query))
    }
    for (const { name, field } of inHeaders) readInto(values, name, headers[field])
    return values
  }
}

function readInto(
  values: Record<string, unknown>,
  name: ParameterName,
  text: string | string[] | undefined,
): void {
  if (text === undefined) return
  const value = String(text)
  values[name] = readers[name].read(value)
  if (values[name] === undefined) {
    const given = value.length <= maxRepeated ? quoteWrong(value) : ''
    throw wrong(name, `must be ${readers[name].expected}${given}`)
  }
}

/** A longer value is not repeated: it may be a token in the wrong place. Those have 20 or more. */
const maxRepeated = 19

function findOnly(name: ParameterName, query: [string, string | undefined][]): string | undefined {
  const requestName = toRequestName(name)
  const found = query.filter(([given]) => given === requestName)
  if (found.length > 1) throw wrong(name, 'is given twice: send it once')
  const [first] = found
  if (first === undefined) return undefined
  const [, value] = first
  if (value === undefined) throw wrong(name, 'is not UTF-8 in percent-encoding')
  return value
}

/** Names and values of a query. A value that is not UTF-8 in percent-encoding is undefined. */
function parseQuery(url: string): [string, string | undefined][] {
  const start = url.indexOf('?')
  if (start === -1) return []
  const pairs = url.slice(start + 1).split('&', limits.queryPairs + 1)
  if (pairs.length > limits.queryPairs) {
    throw new Failure(40005, `The query must have at most ${limits.queryPairs} parameters.`)
  }
  return pairs.map((pair) => {
    const equals = pair.indexOf('=')
    const [name, value] =
      equals === -1 ? [pair, ''] : [pair.slice(0, equals), pair.slice(equals + 1)]
    return [decode(name) ?? '', decode(value)]
  })
}

function decode(text: string): string | undefined {
  try {
    return decodeURIComponent(text.replaceAll('+', ' '))
  } catch {
    return undefined
  }
}

function buildLimit(max: number): Reader<number> {
  const read = (text: string) =>
    /^[1-9]\d{0,9}$/.test(text) && Number(text) <= max ? Number(text) : undefined
  return { read, expected: `a number from 1 to ${max}` }
}

function buildChoice<Value extends string>(values: readonly Value[]): Reader<Value> {
  const expected = `${values.slice(0, -1).join(', ')} or ${values.at(-1)}`
  return { read: (text) => values.find((value) => value === text), expected }
}

function toBoolean(text: string): boolean | undefined {
  return text === 'true' || (text === 'false' ? false : undefined)
}

function toKey(text: string): string | undefined {
  return /^[!-~]{1,255}$/.test(text) ? text : undefined
}

/** An entity tag with the comma after it, or an empty element. */
const elementPattern = /[ \t]*(?:(W\/)?"([!#-~\x80-\xff]*)"[ \t]*)?(?:,|$)/y

/** The states that a list of entity tags names. Strong comparison ignores weak tags. */
function toStates(text: string, comparison: 'strong' | 'weak'): States | undefined {
  if (text.trim() === '*') return '*'
  const tags: RegExpExecArray[] = []
  elementPattern.lastIndex = 0
  for (let count = 0; elementPattern.lastIndex < text.length; count++) {
    const element = elementPattern.exec(text)
    if (element === null || count === limits.entityTags) return undefined
    if (element[2] !== undefined) tags.push(element)
  }
  if (tags.length === 0) return undefined
  return tags
    .filter(([, weak]) => comparison === 'weak' || weak === undefined)
    .flatMap(([, , value = '']) => toVersion(value) ?? [])
}

function wrong(name: ParameterName, reason: string): Failure {
  const where = parameters[name].in === 'query' ? 'The query parameter' : 'The header'
  return new Failure(40005, `${where} ${toRequestName(name)} ${reason}.`)
}

/** The entity tag of a version. */
export function toETag(version: bigint): string {
  return `"${version.toString(16)}"`
}

/** The version in an entity tag without quotes; undefined for a tag that is not ours. */
function toVersion(value: string): bigint | undefined {
  return /^(?:0|[1-9a-f][0-9a-f]{0,15})$/.test(value) ? BigInt(`0x${value}`) : undefined
}

const jsonType = 'application/json'

/** Reads a body in JSON as text. Its headers are checked before it is read. */
export async function readJson(
  request: IncomingMessage,
  response: ServerResponse,
): Promise<string> {
  const { headers } = request
  const type = headers['content-type']
  if (type !== undefined && !isMediaType(type, jsonType)) throw otherMediaType(jsonType)
  const encoding = headers['content-encoding']
  if (encoding !== undefined && encoding.toLowerCase() !== 'identity') {
    throw new Failure(41500, 'The body must be sent without a Content-Encoding.')
  }
  const isTooLarge = Number(headers['content-length']) > limits.bodyBytes
  if (isTooLarge) throw type === undefined ? otherMediaType(jsonType) : tooLarge()
  const bytes = await readBody(request, response)
  // A blank body counts as missing. Any other body needs a media type.
  if (isBlank(bytes)) throw new Failure(40002, 'The body is missing: send a JSON object.')
  if (type === undefined) throw otherMediaType(jsonType)
  if (!isUtf8(bytes)) throw new Failure(40001, 'Invalid JSON: the body is not UTF-8.')
  return bytes.toString('utf8')
}

/** Reads and discards the body, so that a broken one is refused before anything is done. */
export async function discardBody(
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  if (Number(request.headers['content-length']) > limits.bodyBytes) throw tooLarge()
  await readBody(request, response)
}

const word = "[\\w!#$%&'*+.^`|~-]+"
const typeParameter = `;[ \\t]*(?:(${word})=(?:(${word})|"((?:[^"\\\\]|\\\\.)*)")[ \\t]*)?`
const typeParameterPattern = new RegExp(typeParameter, 'g')
/** A media type with its parameters, which may be empty. */
const mediaTypePattern = new RegExp(
  `^[ \\t]*([^ \\t;]+)[ \\t]*((?:${typeParameter}){0,${limits.mediaTypeParameters}})$`,
)

/** Whether a `Content-Type` is this media type in UTF-8. Other parameters are ignored, up to 32. */
export function isMediaType(contentType: string, mediaType: string): boolean {
  if (contentType === mediaType) return true
  const [, type = '', parameters = ''] = mediaTypePattern.exec(contentType) ?? []
  if (type.toLowerCase() !== mediaType) return false
  const charsets: string[] = []
  for (const [, name = '', plain, quoted = ''] of parameters.matchAll(typeParameterPattern)) {
    if (name.toLowerCase() === 'charset') charsets.push((plain ?? quoted).toLowerCase())
  }
  return charsets.length <= 1 && charsets.every((charset) => charset === 'utf-8')
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

/** Reads a body, unless it is too large. */
function readBody(request: IncomingMessage, response: ServerResponse): Promise<Buffer> {
  if (hasNoBody(request)) return Promise.resolve(noBytes)
  if (awaitsContinue(request)) response.writeContinue()
  return new Promise((resolve, reject) => {
    let bytes: Buffer = noBytes
    let chunks = 0

    function fail(failure: Failure): void {
      reject(failure)
      // The client is still sending, and stops only once it has read the answer.
      discardRest(request)
    }

    listenToBody(request, {
      onChunk(chunk) {
        // The first chunk is nearly always the last.
        bytes = ++chunks === 1 ? chunk : Buffer.concat([bytes, chunk])
        if (bytes.length > limits.bodyBytes) fail(tooLarge())
        else if (isTooFine(chunks, bytes.length)) fail(tooManyChunks())
        return true
      },
      onEnd: () => resolve(bytes),
      onLost: fail,
    })
  })
}

const noBytes = Buffer.alloc(0)

function tooLarge(): Failure {
  return new Failure(41300, `The body must have at most ${limits.bodyBytes} bytes.`)
}

/**
 * The media type that a client prefers. The first one is the default and wins a tie, unless
 * `Accept` names the other type and covers the default only by a wildcard.
 */
export function toPreferred(accept: string | undefined, mediaTypes: readonly string[]): string {
  const [usual = ''] = mediaTypes
  if (accept === undefined) return usual
  const ranges = parseList(accept)
  const qualities = mediaTypes.map((mediaType) => qualityOf(mediaType, ranges))
  const best = Math.max(...qualities)
  return best > 0 ? (mediaTypes[qualities.indexOf(best)] as string) : usual
}

/** Whether a client accepts gzip, and does not prefer the plain answer. */
export function takesGzip(acceptEncoding: string | undefined): boolean {
  if (acceptEncoding === undefined) return false
  const codings = parseList(acceptEncoding)
  const quality = codings.get('gzip') ?? codings.get('x-gzip') ?? codings.get('*') ?? 0
  return quality > 0 && quality >= (codings.get('identity') ?? 0)
}

/** How much less a media type counts if only a wildcard covers it. Qualities have three digits. */
const wildcardDiscount = 0.0001

/** The quality of a media type, from the most specific range that covers it. */
function qualityOf(mediaType: string, ranges: ReadonlyMap<string, number>): number {
  const [type] = mediaType.split('/')
  const byWildcard = ranges.get(`${type}/*`) ?? ranges.get('*/*') ?? 0
  return ranges.get(mediaType) ?? byWildcard - wildcardDiscount
}

/** How many elements of a header are read. The others are ignored. */
const maxElements = 32

/** The elements of a header with their qualities, 1 by default. Other parameters are ignored. */
function parseList(text: string): Map<string, number> {
  return new Map(
    text.split(',', maxElements).map((element) => {
      const [name = '', ...parameters] = element
        .split(';', 1 + limits.mediaTypeParameters)
        .map((part) => part.trim().toLowerCase())
      const quality = parameters.find((parameter) => parameter.startsWith('q='))
      return [name, quality === undefined ? 1 : Number(quality.slice(2)) || 0]
    }),
  )
}
