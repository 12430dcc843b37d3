import { toOrder } from '../../journal/position.ts'
import type { Saved, Taken } from '../receivers.ts'
import { forgetFailures, type LeasedWork } from '../receivers.ts'
import { runSteps, type Sql } from './sql.ts'

type Run = <Value>(statements: (sql: Sql) => Promise<Value>) => Promise<Value>

/**
 * Claims leases, and takes and saves deliveries, with one statement each: a process that is stopped
 * between two statements would hold locks, and hundreds of rows would be as many round trips.
 *
 * Each session writes on one connection. A new one may be to a server that has lost the last takes
 * and saves, which are not synced. So it has no leases: its first claim gets new epochs, with which
 * their holder reads its receivers and deliveries again.
 */
export function buildLeasedWork(write: Run): LeasedWork {
  const claimedOn = new WeakSet<Sql>()

  return {
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

    take: (owner, taken) => write(async (sql) => claimedOn.has(sql) && take(sql, owner, taken)),
    save: (owner, saved) => write(async (sql) => claimedOn.has(sql) && save(sql, owner, saved)),
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
  if (isHeld && failed.some(({ dueAt }) => dueAt === undefined))
    await runSteps(sql, forgetFailures(id))
  return isHeld
}
