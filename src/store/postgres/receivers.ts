import { toOrder } from '../../journal/position.ts'
import {
  maxFailures,
  maxReceivers,
  type ReceiverChange,
  type ReceiverStore,
  type Saved,
  type Taken,
} from '../receivers.ts'
import {
  type BacklogRow,
  type DeliveryRow,
  type ReceiverRow,
  toBacklog,
  toDelivery,
  toReceiver,
  toReceiverRow,
} from '../table-rows.ts'
import { insertRow, inTransaction, type Sql } from './sql.ts'

type Run = <Value>(statements: (sql: Sql) => Promise<Value>) => Promise<Value>

/**
 * Builds the part of the store for receivers, given a way to read and one to write. Each session
 * writes on one connection. A new one may be to a server that has lost the last takes and saves,
 * which are not synced. So it has no leases: its first claim gets new epochs, with which their
 * holder reads its receivers and deliveries again.
 */
export function buildReceiverStore(read: Run, write: Run): ReceiverStore {
  const claimedOn = new WeakSet<Sql>()
  const transact = <Value>(run: (sql: Sql) => Promise<Value>) =>
    write((sql) => inTransaction(sql, () => run(sql)))

  return {
    add: (receiver) =>
      transact(async (sql) => {
        // This locks the row, so that of two concurrent adds the second counts the first.
        await bumpRevision(sql)
        const [row] = await sql<[{ count: string }]>`
          SELECT pg_catalog.count(*) AS count FROM plant_store.receivers`
        if (Number(row.count) >= maxReceivers) return 'too many'
        await insertRow(sql, 'receivers', toReceiverRow(receiver))
        return 'added'
      }),

    list: () =>
      read(async (sql) => {
        const rows = await sql<ReceiverRow[]>`
          SELECT * FROM plant_store.receivers ORDER BY created_at, id COLLATE pg_catalog."C"`
        return rows.map(toReceiver)
      }),

    change: (id, one) => transact((sql) => change(sql, id, one)),

    remove: (id) =>
      transact(async (sql) => {
        const { count } = await sql`DELETE FROM plant_store.receivers WHERE id = ${id}`
        if (count === 0) return 'unknown'
        await sql`DELETE FROM plant_store.deliveries WHERE receiver_id = ${id}`
        await bumpRevision(sql)
        return 'removed'
      }),

    revision: () =>
      read(async (sql) => {
        const [row] = await sql<[{ revision: string }]>`
          SELECT revision FROM plant_store.receiver_revision`
        return BigInt(row.revision)
      }),

    // Uses the clock of the database, which all processes share. A lease that ends too far in the
    // future was claimed before that clock was set back. Only leases of others are skipped while
    // their row is locked: one of its own that is missing would count as lost. An epoch is at least
    // the time: a failover to an asynchronous standby may undo a claim, and its epoch, which a
    // process still remembers, must not be used again.
    claim: (owner, leaseMs) =>
      write(async (sql) => {
        const isFirst = !claimedOn.has(sql)
        const rows = await sql<{ id: string; lease_epoch: string }[]>`
          WITH clock AS (
            SELECT (extract(epoch FROM pg_catalog.clock_timestamp()) * 1000::numeric)::bigint AS now),
          free AS (SELECT id FROM plant_store.receivers, clock
            WHERE state = 'active' AND lease_owner IS DISTINCT FROM ${owner}
              AND (lease_owner IS NULL OR lease_until <= now
                OR lease_until > now + 2 * ${leaseMs}::bigint)
            ORDER BY id FOR UPDATE OF receivers SKIP LOCKED)
          UPDATE plant_store.receivers SET lease_owner = ${owner},
            lease_until = now + ${leaseMs}::bigint,
            lease_epoch = CASE WHEN ${isFirst} OR lease_owner IS DISTINCT FROM ${owner}
              THEN greatest(lease_epoch + 1, now) ELSE lease_epoch END
          FROM clock
          WHERE lease_owner = ${owner} OR id IN (SELECT id FROM free)
          RETURNING id, lease_epoch`
        claimedOn.add(sql)
        return rows.map(({ id, lease_epoch }) => ({ id, epoch: Number(lease_epoch) }))
      }),

    release: (owner) =>
      write(async (sql) => {
        await sql`UPDATE plant_store.receivers SET lease_owner = NULL WHERE lease_owner = ${owner}`
      }),

    take: (owner, taken) => write(async (sql) => claimedOn.has(sql) && take(sql, owner, taken)),
    save: (owner, saved) => write(async (sql) => claimedOn.has(sql) && save(sql, owner, saved)),

    listDeliveries: (id, state, limit) =>
      read(async (sql) => {
        const rows = await sql<DeliveryRow[]>`
          SELECT position, type, at, plant_id, attempts, due_at, last_status, last_error, body
          FROM plant_store.deliveries
          WHERE receiver_id = ${id} AND (due_at IS NULL) = ${state === 'failed'}
          ORDER BY place LIMIT ${limit ?? null}`
        return rows.map(toDelivery)
      }),

    listBacklogs: () =>
      read(async (sql) => {
        const rows = await sql<BacklogRow[]>`
          SELECT receiver_id, pg_catalog.count(*) AS changes,
            (pg_catalog.array_agg(position ORDER BY place))[1] AS position, pg_catalog.min(at) AS at
          FROM plant_store.deliveries WHERE due_at IS NOT NULL GROUP BY receiver_id`
        return rows.map(toBacklog)
      }),

    retryFailures: (id, dueAt, position) =>
      transact(async (sql) => {
        const place = position === undefined ? null : toOrder(position)
        const { count } = await sql`
          UPDATE plant_store.deliveries SET due_at = ${dueAt}, attempts = 0
          WHERE receiver_id = ${id} AND due_at IS NULL
            AND (${place}::text IS NULL OR place = ${place})`
        await bumpRevision(sql)
        return count
      }),

    addDelivery: (id, delivery) =>
      transact(async (sql) => {
        const { position, type, at, plantId, attempts, body } = delivery
        const { dueAt = null, lastStatus = null, lastError = null } = delivery
        // Locks out a concurrent removal of the receiver: no delivery outlives it.
        const { count } = await sql`
          WITH receiver AS (
            SELECT id FROM plant_store.receivers WHERE id = ${id} FOR KEY SHARE)
          INSERT INTO plant_store.deliveries (receiver_id, place, position, type, at, plant_id,
            attempts, due_at, last_status, last_error, body)
          SELECT id, ${toOrder(position)}, ${position}, ${type}, ${at}::bigint, ${plantId}::bigint,
            ${attempts}::integer, ${dueAt}::bigint, ${lastStatus}::integer, ${lastError}, ${body}
          FROM receiver
          ON CONFLICT (receiver_id, place) DO UPDATE SET attempts = excluded.attempts,
            due_at = excluded.due_at, last_status = excluded.last_status,
            last_error = excluded.last_error`
        if (count === 0) return 'unknown'
        await bumpRevision(sql)
        return 'added'
      }),
  }
}

/**
 * Adds deliveries in the statement that checks the lease and the position. Returns whether both are
 * as expected. As for `save`, the commit does not wait for the disk or a standby: a crash of the
 * server loses the last ones, in order, and the deliveries are repeated.
 */
async function take(sql: Sql, owner: string, taken: Taken): Promise<boolean> {
  const { id, epoch, before, position, ahead, gap = null, deliveries } = taken
  const positions = deliveries.map((one) => one.position)
  const [row] = await sql<[{ held: string }]>`
    WITH held AS (
      UPDATE plant_store.receivers SET position = ${position}, ahead = ${ahead.join(' ')},
        reason = coalesce(${gap}, reason)
      WHERE id = ${id} AND lease_owner = ${owner} AND lease_epoch = ${epoch}
        AND position = ${before}
        AND pg_catalog.set_config('synchronous_commit', 'off', true) = 'off'
      RETURNING id),
    added AS (
      INSERT INTO plant_store.deliveries (receiver_id, place, position, type, at, plant_id,
        attempts, due_at, body)
      SELECT held.id, new.place, new.position, new.type, new.at, new.plant_id, 0, new.at, new.body
      FROM held, ROWS FROM (
        pg_catalog.unnest(${positions.map(toOrder)}::text[]),
        pg_catalog.unnest(${positions}::text[]),
        pg_catalog.unnest(${deliveries.map(({ type }) => type)}::text[]),
        pg_catalog.unnest(${deliveries.map(({ at }) => at)}::bigint[]),
        pg_catalog.unnest(${deliveries.map(({ plantId }) => plantId)}::bigint[]),
        pg_catalog.unnest(${deliveries.map(({ body }) => body)}::text[])
      ) AS new (place, position, type, at, plant_id, body)
      ON CONFLICT (receiver_id, place) DO NOTHING)
    SELECT pg_catalog.count(*) AS held FROM held`
  return row.held === '1'
}

/** Saves outcomes in the statement that checks the lease. Returns whether the lease is held. */
async function save(sql: Sql, owner: string, saved: Saved): Promise<boolean> {
  const { id, epoch, times, done, failed, pause = null } = saved
  const { lastSuccessAt = null, lastFailureAt = null } = times
  const { lastFailure = null, failingSince = null } = times
  const [row] = await sql<[{ held: string }]>`
    WITH held AS (
      UPDATE plant_store.receivers SET last_success_at = ${lastSuccessAt},
        last_failure_at = ${lastFailureAt}, last_failure = ${lastFailure},
        failing_since = ${failingSince}, reason = coalesce(${pause}, reason),
        state = CASE WHEN ${pause}::text IS NULL THEN state ELSE 'paused' END
      WHERE id = ${id} AND lease_owner = ${owner} AND lease_epoch = ${epoch}
        AND pg_catalog.set_config('synchronous_commit', 'off', true) = 'off'
      RETURNING id),
    counted AS (
      UPDATE plant_store.receiver_revision SET revision = revision + 1
      FROM held WHERE ${pause}::text IS NOT NULL),
    gone AS (
      DELETE FROM plant_store.deliveries USING held
      WHERE receiver_id = held.id AND place = ANY(${done.map(toOrder)}::text[])),
    kept AS (
      UPDATE plant_store.deliveries SET attempts = new.attempts, due_at = new.due_at,
        last_status = new.last_status, last_error = new.last_error
      FROM held, ROWS FROM (
        pg_catalog.unnest(${failed.map(({ position }) => toOrder(position))}::text[]),
        pg_catalog.unnest(${failed.map(({ attempts }) => attempts)}::integer[]),
        pg_catalog.unnest(${failed.map(({ dueAt = null }) => dueAt)}::bigint[]),
        pg_catalog.unnest(${failed.map(({ lastStatus = null }) => lastStatus)}::integer[]),
        pg_catalog.unnest(${failed.map(({ lastError = null }) => lastError)}::text[])
      ) AS new (place, attempts, due_at, last_status, last_error)
      WHERE receiver_id = held.id AND deliveries.place = new.place)
    SELECT pg_catalog.count(*) AS held FROM held`
  const isHeld = row.held === '1'
  if (isHeld && failed.some(({ dueAt }) => dueAt === undefined)) await forgetFailures(sql, id)
  return isHeld
}

async function forgetFailures(sql: Sql, id: string): Promise<void> {
  await sql`
    DELETE FROM plant_store.deliveries WHERE receiver_id = ${id} AND due_at IS NULL AND place <= (
      SELECT place FROM plant_store.deliveries WHERE receiver_id = ${id} AND due_at IS NULL
      ORDER BY place DESC LIMIT 1 OFFSET ${maxFailures})`
}

async function change(sql: Sql, id: string, one: ReceiverChange): Promise<'changed' | 'unknown'> {
  const { count } = await runChange(sql, id, one)
  if (count === 0) return 'unknown'
  await bumpRevision(sql)
  return 'changed'
}

function runChange(sql: Sql, id: string, one: ReceiverChange) {
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

async function bumpRevision(sql: Sql): Promise<void> {
  await sql`UPDATE plant_store.receiver_revision SET revision = revision + 1`
}
