import type { WebhookType } from '../contract/webhooks.ts'
import { toOrder } from '../journal/position.ts'
import { newJournalId } from '../journal/row.ts'
import { type Row, type Run, type Statement, type Steps, sql, toNumber, toText } from './steps.ts'

/** A receiver of webhooks. */
export type Receiver = ReturnType<typeof toReceiver>
export type Secrets = Receiver['secrets']
export type Progress = Receiver['progress']
/** The last success and failures of a receiver. */
export type Times = Omit<Progress, 'position' | 'ahead'>
/** A change that a receiver has not acknowledged yet. */
export type Delivery = ReturnType<typeof toDelivery>
/** The state of a delivery after its last attempt. */
export type Attempted = Omit<Delivery, 'type' | 'at' | 'plantId' | 'body'>

/** Reads the row of a receiver. Times are ms since 1970. Positions contain no spaces. */
function toReceiver(row: Row) {
  return {
    id: String(row.id),
    url: String(row.url),
    types: String(row.types).split(' ') as readonly WebhookType[],
    /** The current secret, and the previous one, which also signs until it expires. */
    secrets: {
      current: String(row.secret),
      previous: toText(row.previous_secret),
      previousUntil: toNumber(row.previous_until),
    },
    state: row.state as 'active' | 'paused',
    /** Why it is paused, or a note that it missed changes. */
    reason: toText(row.reason),
    createdAt: Number(row.created_at),
    /** How far the journal was read for it. */
    progress: {
      /** Every wanted change up to here is or was a delivery. */
      position: String(row.position),
      /** Later changes that are or were deliveries, too. Only release 1.1.0 adds any. */
      ahead: String(row.ahead).split(' ').filter(Boolean) as readonly string[],
      lastSuccessAt: toNumber(row.last_success_at),
      lastFailureAt: toNumber(row.last_failure_at),
      lastFailure: toText(row.last_failure),
      /** When the first attempt after the last success failed. */
      failingSince: toNumber(row.failing_since),
    },
  }
}

function toDelivery(row: Row) {
  return {
    position: String(row.position),
    type: row.type as WebhookType,
    at: Number(row.at),
    plantId: BigInt(String(row.plant_id)),
    attempts: Number(row.attempts),
    /** When the next attempt is due; undefined for a failure, which waits for the operator. */
    dueAt: toNumber(row.due_at),
    lastStatus: toNumber(row.last_status),
    lastError: toText(row.last_error),
    /** The plant as JSON. */
    body: String(row.body),
  }
}

/** A change of the journal that a receiver wants. */
export type NewDelivery = Pick<Delivery, 'position' | 'type' | 'at' | 'plantId' | 'body'>

/** The deliveries from a page of the journal that was read for a receiver. */
export interface Taken extends Claim {
  readonly deliveries: readonly NewDelivery[]
  /** The position from which it moves. */
  readonly before: string
  readonly position: string
  readonly ahead: readonly string[]
  /** A note that changes before it are missing. */
  readonly gap: string | undefined
}

/** The outcomes of deliveries to a receiver since the last save. */
export interface Saved extends Claim {
  readonly times: Times
  /** The positions of deliveries that have arrived. */
  readonly done: readonly string[]
  readonly failed: readonly Attempted[]
  /** Pauses the receiver with this reason. */
  readonly pause: string | undefined
}

/** The waiting deliveries of a receiver: how many, and the oldest. */
export interface Backlog {
  readonly id: string
  readonly changes: number
  readonly position: string
  readonly at: number
}

/** The lease of a receiver. Each new holder gets a higher epoch. */
export interface Claim {
  readonly id: string
  readonly epoch: number
}

/** A change that the operator makes to a receiver. */
export type ReceiverChange =
  | { readonly kind: 'pause'; readonly reason: string }
  | { readonly kind: 'resume' }
  | { readonly kind: 'set secrets'; readonly secrets: Secrets }

export const maxReceivers = 100
/** How many failures are kept for a receiver. The oldest are dropped first. */
export const maxFailures = 10_000

/**
 * Receivers of webhooks and their deliveries. One process at a time holds the lease of a receiver,
 * and only that process can take and save its deliveries.
 */
export type ReceiverStore = ReturnType<typeof buildReceiverStore>

/** What an engine does in its own way: leases by its clock, and takes and saves of many rows. */
export interface LeasedWork {
  /**
   * Renews the leases of this owner, also while a receiver is paused: requests may still be in
   * flight. Acquires those of active receivers that are free or expired. Returns all leases that it
   * now holds.
   */
  claim(owner: string, leaseMs: number): Promise<Claim[]>
  /**
   * Adds deliveries and moves the position past them. Existing deliveries stay as they are. Returns
   * false, and changes nothing, if the lease is not held, or if the position is not `before`: then
   * an earlier take, whose outcome was unknown, has moved it. Not synced, like `save`: a power cut
   * may undo it, which only repeats deliveries.
   */
  take(owner: string, taken: Taken): Promise<boolean>
  /** Deletes delivered changes and records failures. Returns whether the lease is held. */
  save(owner: string, saved: Saved): Promise<boolean>
}

/** Builds the part of the store for receivers and their deliveries. */
export function buildReceiverStore(read: Run, write: Run, work: LeasedWork) {
  return {
    ...work,
    add: (receiver: Receiver) => write(() => add(receiver)),
    list: () => read(list),
    change: (id: string, one: ReceiverChange) => write(() => change(id, one)),
    remove: (id: string) => write(() => remove(id)),
    /** A number that changes whenever an operator changes a receiver, in any process. */
    revision: () => read(readRevision),
    release: (owner: string) => write(() => release(owner)),
    /** The waiting or the failed deliveries of a receiver, in journal order. */
    listDeliveries: (id: string, state: 'waiting' | 'failed', limit?: number) =>
      read(() => listDeliveries(id, state, limit)),
    /** The backlog of each receiver that has one. */
    listBacklogs: () => read(listBacklogs),
    /** Makes every failure due again, or the one at a position. Returns how many there were. */
    retryFailures: (id: string, dueAt: number, position?: string) =>
      write(() => retryFailures(id, dueAt, position)),
    /** Adds a delivery. One at the same position gets its state and keeps its body. */
    addDelivery: (id: string, delivery: Delivery) => write(() => addDelivery(id, delivery)),
  }
}

function* add(receiver: Receiver): Steps<'added' | 'too many'> {
  // This locks the row, so that of two concurrent adds the second counts the first.
  yield* raiseRevision()
  const [counted] = yield sql`SELECT count(*) AS count FROM plant_store.receivers`
  if (Number(counted?.count) >= maxReceivers) return 'too many'
  const { id, url, types, secrets, state, reason = null, createdAt, progress } = receiver
  const { previous = null, previousUntil = null } = secrets
  const { lastSuccessAt = null, lastFailureAt = null, lastFailure = null } = progress
  yield sql`
    INSERT INTO plant_store.receivers (id, url, types, secret, previous_secret, previous_until,
      state, reason, created_at, position, ahead, last_success_at, last_failure_at, last_failure,
      failing_since)
    VALUES (${id}, ${url}, ${types.join(' ')}, ${secrets.current}, ${previous}, ${previousUntil},
      ${state}, ${reason}, ${createdAt}, ${progress.position}, ${progress.ahead.join(' ')},
      ${lastSuccessAt}, ${lastFailureAt}, ${lastFailure}, ${progress.failingSince ?? null})`
  return 'added'
}

/** The oldest first. */
function* list(): Steps<Receiver[]> {
  const rows = yield sql`SELECT * FROM plant_store.receivers`
  const receivers = rows.map(toReceiver)
  return receivers.sort((a, b) => a.createdAt - b.createdAt || (a.id < b.id ? -1 : 1))
}

function* change(id: string, one: ReceiverChange): Steps<'changed' | 'unknown'> {
  const { count } = yield toUpdate(id, one)
  if (count === 0) return 'unknown'
  yield* raiseRevision()
  return 'changed'
}

function toUpdate(id: string, one: ReceiverChange): Statement {
  if (one.kind === 'pause') {
    return sql`UPDATE plant_store.receivers SET state = 'paused', reason = ${one.reason}
      WHERE id = ${id}`
  }
  if (one.kind === 'resume') {
    return sql`UPDATE plant_store.receivers SET state = 'active', reason = NULL,
      failing_since = NULL WHERE id = ${id}`
  }
  const { current, previous = null, previousUntil = null } = one.secrets
  return sql`UPDATE plant_store.receivers SET secret = ${current}, previous_secret = ${previous},
    previous_until = ${previousUntil} WHERE id = ${id}`
}

function* remove(id: string): Steps<'removed' | 'unknown'> {
  const { count } = yield sql`DELETE FROM plant_store.receivers WHERE id = ${id}`
  if (count === 0) return 'unknown'
  yield sql`DELETE FROM plant_store.deliveries WHERE receiver_id = ${id}`
  yield* raiseRevision()
  return 'removed'
}

export function* raiseRevision(): Steps<void> {
  yield sql`UPDATE plant_store.receiver_revision SET revision = revision + 1`
}

function* readRevision(): Steps<bigint> {
  const [row] = yield sql`SELECT revision FROM plant_store.receiver_revision`
  return BigInt(String(row?.revision))
}

function* release(owner: string): Steps<void> {
  yield sql`UPDATE plant_store.receivers SET lease_owner = NULL WHERE lease_owner = ${owner}`
}

const noLimit = Number.MAX_SAFE_INTEGER

function* listDeliveries(
  id: string,
  state: 'waiting' | 'failed',
  limit = noLimit,
): Steps<Delivery[]> {
  const rows = yield state === 'waiting'
    ? sql`SELECT * FROM plant_store.deliveries WHERE receiver_id = ${id} AND due_at IS NOT NULL
        ORDER BY place LIMIT ${limit}`
    : sql`SELECT * FROM plant_store.deliveries WHERE receiver_id = ${id} AND due_at IS NULL
        ORDER BY place LIMIT ${limit}`
  return rows.map(toDelivery)
}

function* listBacklogs(): Steps<Backlog[]> {
  const rows = yield sql`
    SELECT first.receiver_id, changes, first.position, first.at FROM (
      SELECT receiver_id, count(*) AS changes, min(place) AS place FROM plant_store.deliveries
      WHERE due_at IS NOT NULL GROUP BY receiver_id) AS backlog
    JOIN plant_store.deliveries AS first
      ON first.receiver_id = backlog.receiver_id AND first.place = backlog.place`
  return rows.map(({ receiver_id, changes, position, at }) => ({
    id: String(receiver_id),
    changes: Number(changes),
    position: String(position),
    at: Number(at),
  }))
}

function* retryFailures(id: string, dueAt: number, position?: string): Steps<number> {
  const place = position === undefined ? null : toOrder(position)
  const { count } = yield sql`
    UPDATE plant_store.deliveries SET due_at = ${dueAt}, attempts = 0
    WHERE receiver_id = ${id} AND due_at IS NULL AND place = coalesce(${place}, place)`
  yield* raiseRevision()
  return count
}

function* addDelivery(id: string, delivery: Delivery): Steps<'added' | 'unknown'> {
  // Locks out a concurrent removal of the receiver: no delivery outlives it.
  const { count } = yield sql`UPDATE plant_store.receivers SET state = state WHERE id = ${id}`
  if (count === 0) return 'unknown'
  const { position, type, at, plantId, attempts, body } = delivery
  const { dueAt = null, lastStatus = null, lastError = null } = delivery
  yield sql`
    INSERT INTO plant_store.deliveries (receiver_id, place, position, type, at, plant_id, attempts,
      due_at, last_status, last_error, body)
    VALUES (${id}, ${toOrder(position)}, ${position}, ${type}, ${at}, ${plantId}, ${attempts},
      ${dueAt}, ${lastStatus}, ${lastError}, ${body})
    ON CONFLICT (receiver_id, place) DO UPDATE SET attempts = excluded.attempts,
      due_at = excluded.due_at, last_status = excluded.last_status,
      last_error = excluded.last_error`
  yield* raiseRevision()
  return 'added'
}

/** Forgets the oldest failures beyond those that are kept. */
export function* forgetFailures(id: string): Steps<void> {
  yield sql`
    DELETE FROM plant_store.deliveries WHERE receiver_id = ${id} AND due_at IS NULL AND place <= (
      SELECT place FROM plant_store.deliveries WHERE receiver_id = ${id} AND due_at IS NULL
      ORDER BY place DESC LIMIT 1 OFFSET ${maxFailures})`
}

/**
 * Turns a copy of a store into a store of its own. Its receivers are paused, because the original
 * may still send to them, and positions of the original do not match.
 */
export function* separate(reason: string): Steps<void> {
  yield sql`UPDATE plant_store.receivers SET state = 'paused', lease_owner = NULL,
    reason = ${reason} WHERE state = 'active'`
  yield* renameJournal()
}

/**
 * Gives the journal a new id, also in the positions of receivers and deliveries. Positions that
 * other followers have from before are gone then.
 */
function* renameJournal(): Steps<void> {
  const [life] = yield sql`SELECT id FROM plant_store.journal_life`
  const [before, after] = [toText(life?.id), newJournalId()]
  if (before === undefined) return
  yield sql`UPDATE plant_store.journal_life SET id = ${after}`
  yield sql`UPDATE plant_store.receivers SET position = replace(position, ${before}, ${after}),
    ahead = replace(ahead, ${before}, ${after})`
  yield sql`UPDATE plant_store.deliveries SET position = replace(position, ${before}, ${after})`
}
