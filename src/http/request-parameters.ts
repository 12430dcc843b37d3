import type { IncomingHttpHeaders } from 'node:http'
import { Failure } from '../contract/errors.ts'
import { delimiterNames, delimiters } from '../contract/formats.ts'
import { limits } from '../contract/limits.ts'
import {
  conflictRules,
  latest,
  orders,
  type ParameterName,
  pageLimits,
  parameters,
  toRequestName,
} from '../contract/parameters.ts'
import type { States } from '../contract/precondition.ts'
import {
  expectedSearch,
  int64Range,
  isSearchable,
  isStorable,
  toPathId,
} from '../contract/values.ts'
import { quoteWrong } from '../contract/wrong-value.ts'
import { toCursor } from '../journal/position.ts'
import type { Position } from '../store/store.ts'

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
  'on-conflict': {
    read: (text) => conflictRules.find((rule) => rule === text),
    expected: 'fail, skip or replace',
  },
  'dry-run': { read: toBoolean, expected: 'true or false' },
  delimiter: { read: toDelimiter, expected: 'comma, semicolon or tab' },
  spreadsheet: { read: toBoolean, expected: 'true or false' },
  eventLimit: buildLimit(pageLimits.max),
  position: { read: readPosition, expected: expectedPosition },
  // Pages ignore it; streams check it.
  'Last-Event-ID': { read: (text) => text, expected: expectedPosition },
  after: { read: toPathId, expected: `an integer ${int64Range}` },
  tag: {
    read: (text) => (isStorable(text) ? text : undefined),
    expected: 'text without NUL characters',
  },
  name: { read: (text) => (isSearchable(text) ? text : undefined), expected: expectedSearch },
  order: { read: (text) => orders.find((order) => order === text), expected: 'asc or desc' },
  'If-Match': { read: (text) => toStates(text, 'strong'), expected: entityTags },
  createIfMatch: { read: (text) => toStates(text, 'strong'), expected: entityTags },
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

function toDelimiter(text: string): string | undefined {
  const found = delimiterNames.find((name) => name === text)
  return found && delimiters[found]
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

const scheme = 'bearer '
const usualScheme = 'Bearer '

/** The token in the header `Authorization`; empty if there is none. */
export function toToken({ authorization = '' }: IncomingHttpHeaders): string {
  const given = authorization.slice(0, scheme.length)
  const isBearer = given === usualScheme || given.toLowerCase() === scheme
  return isBearer ? authorization.slice(scheme.length).trim() : ''
}
