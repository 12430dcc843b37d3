import { createHmac, randomBytes, randomInt } from 'node:crypto'
import type { Receiver, Secrets } from '../store/receivers.ts'
import type { Outcome } from './schedule.ts'
import type { Transport } from './transport.ts'

/** A receiver with a new id and a new secret, which begins after this position. */
export function newReceiver(url: string, types: Receiver['types'], position: string): Receiver {
  return {
    id: newId(),
    url,
    types,
    secrets: { current: newSecret(), previous: undefined, previousUntil: undefined },
    state: 'active',
    reason: undefined,
    createdAt: Date.now(),
    progress: {
      position,
      ahead: [],
      lastSuccessAt: undefined,
      lastFailureAt: undefined,
      lastFailure: undefined,
      failingSince: undefined,
    },
  }
}

const alphabet = '0123456789abcdefghijklmnopqrstuvwxyz'

/** An id by which operators refer to a receiver. It is not a secret. */
function newId(): string {
  const letters = Array.from({ length: 12 }, () => alphabet[randomInt(alphabet.length)])
  return `whk_${letters.join('')}`
}

/** The longest URL of a receiver, in bytes. */
const maxUrlBytes = 2_048

/** What is wrong with the URL of a receiver, if anything. It never repeats the URL. */
export function findUrlMistake(text: string): string | undefined {
  if (Buffer.byteLength(text) > maxUrlBytes) return `must have at most ${maxUrlBytes} bytes`
  const url = URL.parse(text)
  // The parser drops spaces and line ends, so the stored URL would not be the given one.
  if (url === null || /[\s\p{C}]/u.test(text)) return 'must be a whole URL'
  if (url.protocol !== 'http:' && url.protocol !== 'https:') return 'must be http or https'
  if (url.username !== '' || url.password !== '') return 'must not have a user or a password in it'
  return undefined
}

const prefix = 'whsec_'
const secretBytes = 32
/** How long requests are also signed with the previous secret. */
export const rotationMs = 24 * 60 * 60 * 1000

/** A new secret in the form of Standard Webhooks: a prefix and base64. */
export function newSecret(): string {
  return prefix + randomBytes(secretBytes).toString('base64')
}

/** New secrets: the current one becomes the previous one. */
export function rotate({ current: previous }: Secrets) {
  return { current: newSecret(), previous, previousUntil: Date.now() + rotationMs }
}

/** A plant as JSON, with the event of its request, and an id that each attempt repeats. */
export interface Message {
  readonly id: string
  readonly event: string
  readonly body: string
}

/** Signs a message and sends it once. After a rotation, it has two signatures. */
export function deliver(
  transport: Transport,
  { current, previous, previousUntil = 0 }: Secrets,
  { id, event, body }: Message,
  mayWrite: () => boolean,
): Promise<Outcome> {
  const now = Date.now()
  const timestamp = Math.floor(now / 1000)
  const signed = `${id}.${timestamp}.${body}`
  const signing = previous !== undefined && now < previousUntil ? [current, previous] : [current]
  const headers = {
    'content-type': 'application/json',
    'user-agent': 'plant-store',
    'plant-event': event,
    'webhook-id': id,
    'webhook-timestamp': String(timestamp),
    'webhook-signature': signing.map((secret) => sign(secret, signed)).join(' '),
  }
  return transport.post({ headers, body, mayWrite })
}

function sign(secret: string, signed: string): string {
  const key = Buffer.from(secret.slice(prefix.length), 'base64')
  return `v1,${createHmac('sha256', key).update(signed).digest('base64')}`
}
