import type { StoredPlant } from '../../contract/shapes.ts'
import { type DeliveryRow, toDelivery } from '../receiver-row.ts'
import { type Delivery, type KeptDelivery, maxFailures } from '../receivers.ts'
import type { Sql } from './sql.ts'

/** The statements on deliveries that are kept. */
export const deliveryStatements = {
  async keep(sql: Sql, id: string, delivery: KeptDelivery): Promise<void> {
    const { position, type, at, plantId, attempts, plant } = delivery
    const { dueAt = null, lastStatus = null, lastError = null } = delivery
    if (plant === undefined) {
      await sql`
        UPDATE plant_store.deliveries SET attempts = ${attempts}, due_at = ${dueAt},
          last_status = ${lastStatus}, last_error = ${lastError}
        WHERE receiver_id = ${id} AND position = ${position}`
      return
    }
    await sql`
      INSERT INTO plant_store.deliveries (receiver_id, position, type, at, plant_id, attempts,
        due_at, last_status, last_error, name, tag)
      VALUES (${id}, ${position}, ${type}, ${at}, ${String(plantId)}::bigint, ${attempts},
        ${dueAt}, ${lastStatus}, ${lastError}, ${plant.name}, ${plant.tag ?? null})
      ON CONFLICT (receiver_id, position) DO UPDATE SET attempts = excluded.attempts,
        due_at = excluded.due_at, last_status = excluded.last_status,
        last_error = excluded.last_error`
  },

  /** Keeps and deletes what a sender has saved, in the transaction of its caller. */
  async save(
    sql: Sql,
    id: string,
    kept: readonly KeptDelivery[],
    done: readonly string[],
  ): Promise<void> {
    for (const delivery of kept) await deliveryStatements.keep(sql, id, delivery)
    if (done.length > 0) {
      await sql`
        DELETE FROM plant_store.deliveries
        WHERE receiver_id = ${id} AND position = ANY(${done}::text[])`
    }
    if (kept.some(({ dueAt }) => dueAt === undefined)) {
      await sql`
        DELETE FROM plant_store.deliveries WHERE receiver_id = ${id} AND due_at IS NULL
          AND sequence NOT IN (
            SELECT sequence FROM plant_store.deliveries WHERE receiver_id = ${id}
              AND due_at IS NULL ORDER BY sequence DESC LIMIT ${maxFailures})`
    }
  },

  async retryFailures(sql: Sql, id: string, dueAt: number): Promise<number> {
    const [row] = await sql<[{ found: string }]>`
      WITH retried AS (UPDATE plant_store.deliveries SET due_at = ${dueAt}, attempts = 0
        WHERE receiver_id = ${id} AND due_at IS NULL RETURNING 1),
      counted AS (UPDATE plant_store.receiver_revision SET revision = revision + 1)
      SELECT pg_catalog.count(*) AS found FROM retried`
    return Number(row.found)
  },

  async list(sql: Sql, id: string, state: 'waiting' | 'failed'): Promise<Delivery[]> {
    const rows = await sql<DeliveryRow[]>`
      SELECT position, type, at, plant_id, attempts, due_at, last_status, last_error
      FROM plant_store.deliveries
      WHERE receiver_id = ${id} AND (due_at IS NULL) = ${state === 'failed'} ORDER BY sequence`
    return rows.map(toDelivery)
  },

  async findPlant(sql: Sql, id: string, position: string): Promise<StoredPlant | undefined> {
    const [row] = await sql<{ plant_id: string; name: string; tag: string | null }[]>`
      SELECT plant_id, name, tag FROM plant_store.deliveries
      WHERE receiver_id = ${id} AND position = ${position}`
    if (row === undefined) return undefined
    const { plant_id, name, tag } = row
    return tag === null ? { id: BigInt(plant_id), name } : { id: BigInt(plant_id), name, tag }
  },
}
