import type { WebhookType } from '../contract/webhooks.ts'
import type { Backlog, Delivery, Receiver } from './receivers.ts'

/** Engines return 64-bit integers as bigint or as text. */
type Integer = bigint | string

/** A row of the table of receivers. */
export interface ReceiverRow {
  readonly id: string
  readonly url: string
  readonly types: string
  readonly secret: string
  readonly previous_secret: string | null
  readonly previous_until: Integer | null
  readonly state: string
  readonly reason: string | null
  readonly created_at: Integer
  readonly position: string
  readonly ahead: string
  readonly last_success_at: Integer | null
  readonly last_failure_at: Integer | null
  readonly last_failure: string | null
  readonly failing_since: Integer | null
}

/** A row of the table of deliveries, with the size of its body. */
export interface DeliveryRow {
  readonly position: string
  readonly type: string
  readonly at: Integer
  readonly plant_id: Integer
  readonly attempts: Integer
  readonly due_at: Integer | null
  readonly last_status: Integer | null
  readonly last_error: string | null
  readonly bytes: Integer
}

export interface BacklogRow {
  readonly receiver_id: string
  readonly changes: Integer
  readonly position: string
  readonly at: Integer
}

export function toReceiver(row: ReceiverRow): Receiver {
  return {
    id: row.id,
    url: row.url,
    types: row.types.split(' ') as WebhookType[],
    secrets: {
      current: row.secret,
      previous: row.previous_secret ?? undefined,
      previousUntil: toNumber(row.previous_until),
    },
    state: row.state as Receiver['state'],
    reason: row.reason ?? undefined,
    createdAt: Number(row.created_at),
    progress: {
      position: row.position,
      ahead: toPositions(row.ahead),
      lastSuccessAt: toNumber(row.last_success_at),
      lastFailureAt: toNumber(row.last_failure_at),
      lastFailure: row.last_failure ?? undefined,
      failingSince: toNumber(row.failing_since),
    },
  }
}

/** A receiver as a row. Positions contain no spaces. */
export function toReceiverRow({ secrets, progress, ...receiver }: Receiver) {
  return {
    id: receiver.id,
    url: receiver.url,
    types: receiver.types.join(' '),
    secret: secrets.current,
    previous_secret: secrets.previous ?? null,
    previous_until: secrets.previousUntil ?? null,
    state: receiver.state,
    reason: receiver.reason ?? null,
    created_at: receiver.createdAt,
    position: progress.position,
    ahead: progress.ahead.join(' '),
    last_success_at: progress.lastSuccessAt ?? null,
    last_failure_at: progress.lastFailureAt ?? null,
    last_failure: progress.lastFailure ?? null,
    failing_since: progress.failingSince ?? null,
  }
}

export function toDelivery(row: DeliveryRow): Delivery {
  return {
    position: row.position,
    type: row.type as WebhookType,
    at: Number(row.at),
    plantId: BigInt(row.plant_id),
    attempts: Number(row.attempts),
    dueAt: toNumber(row.due_at),
    lastStatus: toNumber(row.last_status),
    lastError: row.last_error ?? undefined,
    bytes: Number(row.bytes),
  }
}

export function toBacklog({ receiver_id, changes, position, at }: BacklogRow): Backlog {
  return { id: receiver_id, changes: Number(changes), position, at: Number(at) }
}

function toPositions(text: string): string[] {
  return text === '' ? [] : text.split(' ')
}

function toNumber(value: Integer | null): number | undefined {
  return value === null ? undefined : Number(value)
}
