import type { Secrets } from '../store/receivers.ts'
import { sign } from './receiver.ts'
import type { Outcome } from './schedule.ts'
import type { Transport } from './transport.ts'

/** A plant as JSON, with the id and the event of its request. */
export interface Message {
  readonly id: string
  readonly event: string
  readonly body: string
}

/** Signs a message and sends it once. */
export function deliver(
  transport: Transport,
  secrets: Secrets,
  { id, event, body }: Message,
  mayWrite: () => boolean,
): Promise<Outcome> {
  const now = Date.now()
  const timestamp = Math.floor(now / 1000)
  const headers = {
    'content-type': 'application/json',
    'user-agent': 'plant-store',
    'plant-event': event,
    'webhook-id': id,
    'webhook-timestamp': String(timestamp),
    'webhook-signature': sign(secrets, { id, timestamp, body }, now),
  }
  return transport.post({ headers, body, mayWrite })
}
