import type { Scope } from '../contract/scopes.ts'
import type { WebhookType } from '../contract/webhooks.ts'
import type { Backlog, Delivery, Receiver } from './receivers.ts'
import type { TokenRecord } from './store.ts'

/** Engines return 64-bit integers as bigint or as text. */
type Integer = bigint | string

/** A row as an engine returns it, from the form in which it is written. */
type Stored<Row> = {
  readonly [Name in keyof Row]: number extends Row[Name]
    ? Exclude<Row[Name], number> | Integer
    : Row[Name]
}

export type TokenRow = Stored<ReturnType<typeof toTokenRow>>
export type ReceiverRow = Stored<ReturnType<typeof toReceiverRow>>

/** A row of the table of deliveries. */
export interface DeliveryRow {
  readonly position: string
  readonly type: string
  readonly at: Integer
  readonly plant_id: Integer
  readonly attempts: Integer
  readonly due_at: Integer | null
  readonly last_status: Integer | null
  readonly last_error: string | null
  readonly body: string
}

export interface BacklogRow {
  readonly receiver_id: string
  readonly changes: Integer
  readonly position: string
  readonly at: Integer
}

export const tokenColumns =
  'id, hash, name, scopes, created_at, expires_at, revoked_at, last_used_at, last_four'

export function toTokenRow(token: TokenRecord) {
  return {
    id: token.id,
    hash: token.hash,
    name: token.name,
    scopes: token.scopes.join(' '),
    created_at: token.createdAt,
    expires_at: token.expiresAt ?? null,
    revoked_at: token.revokedAt ?? null,
    last_used_at: token.lastUsedAt ?? null,
    last_four: token.lastFour ?? null,
  }
}

export function toToken(row: TokenRow): TokenRecord {
  return {
    id: row.id,
    hash: Buffer.from(row.hash),
    name: row.name,
    scopes: row.scopes.split(' ') as Scope[],
    createdAt: Number(row.created_at),
    expiresAt: toNumber(row.expires_at),
    revokedAt: toNumber(row.revoked_at),
    lastUsedAt: toNumber(row.last_used_at),
    lastFour: row.last_four ?? undefined,
  }
}

export const receiverColumns = `id, url, types, secret, previous_secret, previous_until, state,
  reason, created_at, position, ahead, last_success_at, last_failure_at, last_failure, failing_since`

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
    state: row.state,
    reason: row.reason ?? undefined,
    createdAt: Number(row.created_at),
    progress: {
      position: row.position,
      ahead: row.ahead === '' ? [] : row.ahead.split(' '),
      lastSuccessAt: toNumber(row.last_success_at),
      lastFailureAt: toNumber(row.last_failure_at),
      lastFailure: row.last_failure ?? undefined,
      failingSince: toNumber(row.failing_since),
    },
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
    body: row.body,
  }
}

export function toBacklog({ receiver_id, changes, position, at }: BacklogRow): Backlog {
  return { id: receiver_id, changes: Number(changes), position, at: Number(at) }
}

function toNumber(value: Integer | null): number | undefined {
  return value === null ? undefined : Number(value)
}
