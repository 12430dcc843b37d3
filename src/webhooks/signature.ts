import { createHmac, randomBytes } from 'node:crypto'
import type { Secrets } from '../store/receivers.ts'

const prefix = 'whsec_'
const secretBytes = 32
/** How long the previous secret signs beside the new one. */
export const rotationMs = 24 * 60 * 60 * 1000

/** A new secret in the form of Standard Webhooks: a prefix and base64. */
export function newSecret(): string {
  return prefix + randomBytes(secretBytes).toString('base64')
}

/** What is signed of a request. The id is the same on every attempt, the time is not. */
export interface Signed {
  readonly id: string
  /** In seconds since 1970. */
  readonly timestamp: number
  /** The body, or the type of the event. */
  readonly content: string
}

/** The value of a header: one signature, and a second one after a rotation. */
export function sign(secrets: Secrets, signed: Signed, now: number): string {
  const { current, previous, previousUntil = 0 } = secrets
  const signing = previous !== undefined && now < previousUntil ? [current, previous] : [current]
  return signing.map((secret) => signWith(secret, signed)).join(' ')
}

function signWith(secret: string, { id, timestamp, content }: Signed): string {
  const key = Buffer.from(secret.slice(prefix.length), 'base64')
  return `v1,${createHmac('sha256', key).update(`${id}.${timestamp}.${content}`).digest('base64')}`
}
