import { toOrder } from '../../journal/position.ts'
import { type BacklogRow, type DeliveryRow, toBacklog, toDelivery } from '../receiver-row.ts'
import {
  type AddedDelivery,
  type Backlog,
  type Delivery,
  maxFailureBytes,
  maxFailures,
  type Saved,
  type Taken,
} from '../receivers.ts'
import type { Sql } from './sql.ts'

/**
 * The statements on deliveries. `take` and `save` check the lease and write in one statement. Their
 * commits do not wait for the disk or a standby: a crash of the server loses the last ones, in
 * order, and the deliveries are repeated.
 */
export const deliveryStatements = {
  /** Returns whether the lease is held. */
  async take(sql: Sql, owner: string, taken: Taken): Promise<boolean> {
    const { id, epoch, position, ahead, gap = null, deliveries } = taken
    const positions = deliveries.map((one) => one.position)
    const [row] = await sql<[{ held: string }]>`
      WITH held AS (
        UPDATE plant_store.receivers SET position = ${position}, ahead = ${ahead.join(' ')},
          reason = coalesce(${gap}, reason)
        WHERE id = ${id} AND lease_owner = ${owner} AND lease_epoch = ${epoch}
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
  },

  /** Returns whether the lease is held. */
  async save(sql: Sql, owner: string, saved: Saved): Promise<boolean> {
    const { id, epoch, times, done, failed } = saved
    const { lastSuccessAt = null, lastFailureAt = null } = times
    const { lastFailure = null, failingSince = null } = times
    const [row] = await sql<[{ held: string }]>`
      WITH held AS (
        UPDATE plant_store.receivers SET last_success_at = ${lastSuccessAt},
          last_failure_at = ${lastFailureAt}, last_failure = ${lastFailure},
          failing_since = ${failingSince}
        WHERE id = ${id} AND lease_owner = ${owner} AND lease_epoch = ${epoch}
          AND pg_catalog.set_config('synchronous_commit', 'off', true) = 'off'
        RETURNING id),
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
  },

  async add(sql: Sql, id: string, delivery: AddedDelivery): Promise<void> {
    const { position, type, at, plantId, attempts, body } = delivery
    const { dueAt = null, lastStatus = null, lastError = null } = delivery
    const place = toOrder(position)
    if (body === undefined) {
      await sql`
        UPDATE plant_store.deliveries SET attempts = ${attempts}, due_at = ${dueAt},
          last_status = ${lastStatus}, last_error = ${lastError}
        WHERE receiver_id = ${id} AND place = ${place}`
      return
    }
    await sql`
      INSERT INTO plant_store.deliveries (receiver_id, place, position, type, at, plant_id,
        attempts, due_at, last_status, last_error, body)
      VALUES (${id}, ${place}, ${position}, ${type}, ${at}, ${String(plantId)}::bigint,
        ${attempts}, ${dueAt}, ${lastStatus}, ${lastError}, ${body})
      ON CONFLICT (receiver_id, place) DO UPDATE SET attempts = excluded.attempts,
        due_at = excluded.due_at, last_status = excluded.last_status,
        last_error = excluded.last_error`
  },

  async retryFailures(sql: Sql, id: string, dueAt: number): Promise<number> {
    const [row] = await sql<[{ found: string }]>`
      WITH retried AS (UPDATE plant_store.deliveries SET due_at = ${dueAt}, attempts = 0
        WHERE receiver_id = ${id} AND due_at IS NULL RETURNING 1),
      counted AS (UPDATE plant_store.receiver_revision SET revision = revision + 1)
      SELECT pg_catalog.count(*) AS found FROM retried`
    return Number(row.found)
  },

  async list(
    sql: Sql,
    id: string,
    state: 'waiting' | 'failed',
    limit: number | undefined,
  ): Promise<Delivery[]> {
    const rows = await sql<DeliveryRow[]>`
      SELECT position, type, at, plant_id, attempts, due_at, last_status, last_error,
        pg_catalog.octet_length(body) AS bytes
      FROM plant_store.deliveries
      WHERE receiver_id = ${id} AND (due_at IS NULL) = ${state === 'failed'}
      ORDER BY place LIMIT ${limit ?? null}`
    return rows.map(toDelivery)
  },

  async findBody(sql: Sql, id: string, position: string): Promise<string | undefined> {
    const [row] = await sql<{ body: string }[]>`
      SELECT body FROM plant_store.deliveries
      WHERE receiver_id = ${id} AND place = ${toOrder(position)}`
    return row?.body
  },

  async listBacklogs(sql: Sql): Promise<Backlog[]> {
    const rows = await sql<BacklogRow[]>`
      SELECT receiver_id, pg_catalog.count(*) AS changes,
        (pg_catalog.array_agg(position ORDER BY place))[1] AS position, pg_catalog.min(at) AS at
      FROM plant_store.deliveries WHERE due_at IS NOT NULL GROUP BY receiver_id`
    return rows.map(toBacklog)
  },
}

async function forgetFailures(sql: Sql, id: string): Promise<void> {
  await sql`
    DELETE FROM plant_store.deliveries WHERE receiver_id = ${id} AND due_at IS NULL AND place <= (
      SELECT pg_catalog.max(place) FROM (
        SELECT place, pg_catalog.count(*) OVER newer AS count,
          pg_catalog.sum(pg_catalog.octet_length(body)) OVER newer AS bytes
        FROM plant_store.deliveries WHERE receiver_id = ${id} AND due_at IS NULL
        WINDOW newer AS (ORDER BY place DESC ROWS UNBOUNDED PRECEDING)) AS failures
      WHERE count > ${maxFailures} OR bytes > ${maxFailureBytes})`
}
