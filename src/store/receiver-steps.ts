import type { WebhookType } from '../contract/webhooks.ts'
import { toOrder } from '../journal/position.ts'
import {
  type Backlog,
  type Delivery,
  maxFailures,
  maxReceivers,
  type Receiver,
  type ReceiverChange,
  type ReceiverStore,
} from './receivers.ts'
import { type Row, type Run, type Statement, type Steps, sql, toNumber, toText } from './steps.ts'

/** What an engine does in its own way: leases by its clock, and takes and saves of many rows. */
export type LeasedWork = Pick<ReceiverStore, 'claim' | 'take' | 'save'>

/** Builds the part of the store for receivers and their deliveries. */
export function buildReceiverStore(read: Run, write: Run, work: LeasedWork): ReceiverStore {
  return {
    ...work,
    add: (receiver) => write(() => add(receiver)),
    list: () => read(list),
    change: (id, one) => write(() => change(id, one)),
    remove: (id) => write(() => remove(id)),
    revision: () => read(readRevision),
    release: (owner) => write(() => release(owner)),
    listDeliveries: (...asked) => read(() => listDeliveries(...asked)),
    listBacklogs: () => read(listBacklogs),
    retryFailures: (...asked) => write(() => retryFailures(...asked)),
    addDelivery: (id, delivery) => write(() => addDelivery(id, delivery)),
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
  return rows.map(({ receiver_id, changes, position, at }) => {
    return {
      id: String(receiver_id),
      changes: Number(changes),
      position: String(position),
      at: Number(at),
    }
  })
}

function* retryFailures(id: string, dueAt: number, position?: string): Steps<number> {
  const { count } = yield position === undefined
    ? sql`UPDATE plant_store.deliveries SET due_at = ${dueAt}, attempts = 0
        WHERE receiver_id = ${id} AND due_at IS NULL`
    : sql`UPDATE plant_store.deliveries SET due_at = ${dueAt}, attempts = 0
        WHERE receiver_id = ${id} AND due_at IS NULL AND place = ${toOrder(position)}`
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

/** Positions contain no spaces. */
function toReceiver(row: Row): Receiver {
  return {
    id: String(row.id),
    url: String(row.url),
    types: String(row.types).split(' ') as WebhookType[],
    secrets: {
      current: String(row.secret),
      previous: toText(row.previous_secret),
      previousUntil: toNumber(row.previous_until),
    },
    state: row.state as Receiver['state'],
    reason: toText(row.reason),
    createdAt: Number(row.created_at),
    progress: {
      position: String(row.position),
      ahead: String(row.ahead).split(' ').filter(Boolean),
      lastSuccessAt: toNumber(row.last_success_at),
      lastFailureAt: toNumber(row.last_failure_at),
      lastFailure: toText(row.last_failure),
      failingSince: toNumber(row.failing_since),
    },
  }
}

function toDelivery(row: Row): Delivery {
  return {
    position: String(row.position),
    type: row.type as WebhookType,
    at: Number(row.at),
    plantId: BigInt(String(row.plant_id)),
    attempts: Number(row.attempts),
    dueAt: toNumber(row.due_at),
    lastStatus: toNumber(row.last_status),
    lastError: toText(row.last_error),
    body: String(row.body),
  }
}
