import { isDeepStrictEqual } from 'node:util'
import { type ErrorNumber, toStatus } from '../contract/errors.ts'
import type { Answer } from './wire.ts'

/** An answer, and a description of its request. */
export interface Heard extends Answer {
  readonly sent: string
}

/** What an answer has to be. */
export interface Expected {
  readonly status?: number
  /** A failure: its status follows from it, and the body has to be an Error with this number. */
  readonly error?: ErrorNumber
  /** The value of each field, a pattern for it, or null for a field that must be absent. */
  readonly headers?: Readonly<Record<string, string | RegExp | null>>
  /** The exact JSON, in which integers are bigints, or a pattern for the text. */
  readonly body?: unknown
}

/** A promise that does not hold. */
export class Broken extends Error {
  readonly sent: string
  readonly expected: string
  readonly got: string

  constructor(sent: string, expected: string, got: string) {
    super(`expected ${expected}, got ${got}`)
    this.name = 'Broken'
    this.sent = sent
    this.expected = expected
    this.got = got
  }
}

/** A promise about something that this server has switched off. */
export class Unseen extends Error {}

/** Throws `Broken` unless the answer is as expected. Returns its JSON, if it is JSON. */
export function expect(heard: Heard, expected: Expected): unknown {
  const { error, headers = {}, body } = expected
  const status = error === undefined ? expected.status : toStatus(error)
  if (status !== undefined && heard.status !== status) {
    const number = error === undefined ? '' : `, error ${error}`
    throw broken(heard, `status ${status}${number}`)
  }
  if (!heard.isWhole) throw broken(heard, 'a whole answer')
  for (const [name, value] of Object.entries(headers)) expectHeader(heard, name, value)
  if (error !== undefined) expectError(heard, error)
  if (body instanceof RegExp) {
    if (!body.test(toText(heard))) throw broken(heard, `a body like ${body}`)
  } else if (body !== undefined && !isDeepStrictEqual(toValue(heard), body)) {
    throw broken(heard, `the body ${toJson(body)}`)
  }
  // HEAD names the media type of a body that it does not send.
  return isJson(heard) && heard.body.length > 0 ? toValue(heard) : undefined
}

/** Throws `Broken` unless the condition holds. */
export function require(heard: Heard, isTrue: boolean, expected: string): void {
  if (!isTrue) throw broken(heard, expected)
}

function expectHeader(heard: Heard, name: string, value: string | RegExp | null): void {
  const found = heard.headers.get(name.toLowerCase())
  if (value === null) {
    if (found !== undefined) throw broken(heard, `no ${name}`, `${name}: ${found}`)
    return
  }
  const isRight = typeof value === 'string' ? found === value : value.test(found ?? '')
  const got = found === undefined ? `no ${name}` : `${name}: ${found}`
  if (!isRight) throw broken(heard, `${name}: ${value}`, got)
}

/** Requires exactly the two members of an Error, an int32 and a text. */
function expectError(heard: Heard, number: ErrorNumber): void {
  const value = expectAnyError(heard)
  const isExact = Object.keys(value).length === 2
  require(heard, isExact, 'an Error with exactly the members error and message')
  if (value.error !== BigInt(number)) throw broken(heard, `error ${number}`)
}

/** Requires the members of an Error. */
export function expectAnyError(heard: Heard): Record<string, unknown> {
  require(heard, isJson(heard), 'Content-Type: application/json')
  const value = toValue(heard) as Record<string, unknown> | null
  const { error, message } = value ?? {}
  const isInt32 = typeof error === 'bigint' && BigInt.asIntN(32, error) === error
  require(heard, isInt32, 'an Error whose member error is an int32')
  require(heard, typeof message === 'string', 'an Error whose member message is a string')
  return value ?? {}
}

export function broken(heard: Heard, expected: string, detail?: string): Broken {
  const text = toText(heard)
  const got = [`status ${heard.status}`, detail, text].filter(Boolean).join(', ')
  return new Broken(heard.sent, expected, got)
}

function isJson({ headers }: Heard): boolean {
  return /^application\/json(\s*;|$)/i.test(headers.get('content-type') ?? '')
}

export function toText({ body }: Heard): string {
  return body.toString('utf8')
}

type Reviver = (key: string, value: unknown, context: { source?: string }) => unknown

/** The JSON of an answer. Integers become bigints, exact to the last digit. */
export function toValue(heard: Heard): unknown {
  const revive: Reviver = (_, value, { source = '' }) =>
    typeof value === 'number' && /^-?\d+$/.test(source) ? BigInt(source) : value
  try {
    return JSON.parse(toText(heard), revive as Parameters<typeof JSON.parse>[1])
  } catch {
    throw broken(heard, 'a body of JSON')
  }
}

/** JSON with every digit of the bigints in it. */
export function toJson(value: unknown): string {
  return JSON.stringify(value, (_, one) =>
    typeof one === 'bigint' ? JSON.rawJSON(String(one)) : one,
  )
}
