import type { DatabaseSync } from 'node:sqlite'
import { toOrder } from '../../journal/position.ts'
import { type BacklogRow, type DeliveryRow, toBacklog, toDelivery } from '../receiver-row.ts'
import {
  type AddedDelivery,
  type Attempted,
  type Backlog,
  type Delivery,
  maxFailureBytes,
  maxFailures,
  type NewDelivery,
} from '../receivers.ts'

const columns = 'position, type, at, plant_id, attempts, due_at, last_status, last_error'

/** The statements on deliveries. Those that write run inside a transaction. */
export function buildDeliveryStatements(db: DatabaseSync) {
  const put = `INSERT INTO deliveries (receiver_id, place, ${columns}, body)
     VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`
  const insert = db.prepare(`${put} ON CONFLICT DO NOTHING`)
  const insertOrUpdate = db.prepare(
    `${put} ON CONFLICT DO UPDATE SET attempts = excluded.attempts, due_at = excluded.due_at,
       last_status = excluded.last_status, last_error = excluded.last_error`,
  )
  const update = db.prepare(
    `UPDATE deliveries SET attempts = ?, due_at = ?, last_status = ?, last_error = ?
     WHERE receiver_id = ? AND place = ?`,
  )
  const deleteOne = db.prepare('DELETE FROM deliveries WHERE receiver_id = ? AND place = ?')
  const deleteAll = db.prepare('DELETE FROM deliveries WHERE receiver_id = ?')
  const forgetFailures = db.prepare(
    `DELETE FROM deliveries WHERE receiver_id = :id AND due_at IS NULL AND place <= (
       SELECT max(place) FROM (
         SELECT place, count(*) OVER newer AS count, sum(octet_length(body)) OVER newer AS bytes
         FROM deliveries WHERE receiver_id = :id AND due_at IS NULL
         WINDOW newer AS (ORDER BY place DESC ROWS UNBOUNDED PRECEDING))
       WHERE count > ${maxFailures} OR bytes > ${maxFailureBytes})`,
  )
  const select = {
    waiting: selectWhere('due_at IS NOT NULL'),
    failed: selectWhere('due_at IS NULL'),
  }
  const selectBody = db.prepare('SELECT body FROM deliveries WHERE receiver_id = ? AND place = ?')
  // With min(), SQLite takes the other columns from the row that has the minimum.
  const selectBacklogs = db.prepare(
    `SELECT receiver_id, count(*) AS changes, min(place), position, at FROM deliveries
     WHERE due_at IS NOT NULL GROUP BY receiver_id`,
  )
  const retryFailures = db.prepare(
    'UPDATE deliveries SET due_at = ?, attempts = 0 WHERE receiver_id = ? AND due_at IS NULL',
  )

  function selectWhere(condition: string) {
    return db.prepare(
      `SELECT ${columns}, octet_length(body) AS bytes FROM deliveries
       WHERE receiver_id = ? AND ${condition} ORDER BY place LIMIT ?`,
    )
  }

  function updateOne(id: string, one: Attempted): void {
    const { position, attempts, dueAt = null, lastStatus = null, lastError = null } = one
    update.run(attempts, dueAt, lastStatus, lastError, id, toOrder(position))
  }

  return {
    insert(id: string, { position, type, at, plantId, body }: NewDelivery): void {
      insert.run(id, toOrder(position), position, type, at, plantId, 0, at, null, null, body)
    },

    add(id: string, delivery: AddedDelivery): void {
      const { position, type, at, plantId, attempts, body } = delivery
      const { dueAt = null, lastStatus = null, lastError = null } = delivery
      if (body === undefined) updateOne(id, delivery)
      else {
        const state = [attempts, dueAt, lastStatus, lastError] as const
        insertOrUpdate.run(id, toOrder(position), position, type, at, plantId, ...state, body)
      }
    },

    save(id: string, done: readonly string[], failed: readonly Attempted[]): void {
      for (const position of done) deleteOne.run(id, toOrder(position))
      for (const one of failed) updateOne(id, one)
      if (failed.some(({ dueAt }) => dueAt === undefined)) forgetFailures.run({ id })
    },

    deleteAll(id: string): void {
      deleteAll.run(id)
    },

    retryFailures(id: string, dueAt: number): number {
      return Number(retryFailures.run(dueAt, id).changes)
    },

    list(id: string, state: 'waiting' | 'failed', limit = -1): Delivery[] {
      return (select[state].all(id, limit) as unknown as DeliveryRow[]).map(toDelivery)
    },

    findBody(id: string, position: string): string | undefined {
      const row = selectBody.get(id, toOrder(position)) as { body: string } | undefined
      return row?.body
    },

    listBacklogs(): Backlog[] {
      return (selectBacklogs.all() as unknown as BacklogRow[]).map(toBacklog)
    },
  }
}
