import { randomInt } from 'node:crypto'
import type { WebhookType } from '../contract/webhooks.ts'
import type { Receiver } from '../store/receivers.ts'
import { newSecret } from './signature.ts'

export interface ReceiverRequest {
  readonly url: string
  readonly types: readonly WebhookType[]
  /** The position after which it begins. */
  readonly position: string
}

/** A new receiver, with a secret of its own. */
export function newReceiver({ url, types, position }: ReceiverRequest): Receiver {
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

/** The mistake in the URL of a receiver, if there is one. It never repeats the URL. */
export function findUrlMistake(text: string): string | undefined {
  if (Buffer.byteLength(text) > maxUrlBytes) return `must have at most ${maxUrlBytes} bytes`
  const url = URL.parse(text)
  // The parser would drop spaces and line ends, and the stored URL would not be the given one.
  if (url === null || /[\s\p{C}]/u.test(text)) return 'must be a whole URL'
  if (url.protocol !== 'http:' && url.protocol !== 'https:') return 'must be http or https'
  if (url.username !== '' || url.password !== '') return 'must not have a user or a password in it'
  return undefined
}
