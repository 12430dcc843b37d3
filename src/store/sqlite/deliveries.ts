import type { DatabaseSync } from 'node:sqlite'
import type { StoredPlant } from '../../contract/shapes.ts'
import { type DeliveryRow, toDelivery } from '../receiver-row.ts'
import { type Delivery, type KeptDelivery, maxFailures } from '../receivers.ts'

const columns = 'position, type, at, plant_id, attempts, due_at, last_status, last_error'

interface PlantRow {
  readonly plant_id: bigint
  readonly name: string
  readonly tag: string | null
}

/** The statements on deliveries that are kept. Those that write run inside a transaction. */
export function buildDeliveryStatements(db: DatabaseSync) {
  const put = db.prepare(
    `INSERT INTO deliveries (receiver_id, ${columns}, name, tag)
     VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (receiver_id, position) DO UPDATE SET
       attempts = excluded.attempts, due_at = excluded.due_at,
       last_status = excluded.last_status, last_error = excluded.last_error`,
  )
  const update = db.prepare(
    `UPDATE deliveries SET attempts = ?, due_at = ?, last_status = ?, last_error = ?
     WHERE receiver_id = ? AND position = ?`,
  )
  const deleteOne = db.prepare('DELETE FROM deliveries WHERE receiver_id = ? AND position = ?')
  const deleteAll = db.prepare('DELETE FROM deliveries WHERE receiver_id = ?')
  const forgetFailures = db.prepare(
    `DELETE FROM deliveries WHERE receiver_id = :id AND due_at IS NULL AND sequence NOT IN (
       SELECT sequence FROM deliveries WHERE receiver_id = :id AND due_at IS NULL
       ORDER BY sequence DESC LIMIT ${maxFailures})`,
  )
  const select = {
    waiting: selectWhere('due_at IS NOT NULL'),
    failed: selectWhere('due_at IS NULL'),
  }
  const selectPlant = db.prepare(
    'SELECT plant_id, name, tag FROM deliveries WHERE receiver_id = ? AND position = ?',
  )
  const retryFailures = db.prepare(
    'UPDATE deliveries SET due_at = ?, attempts = 0 WHERE receiver_id = ? AND due_at IS NULL',
  )

  function selectWhere(condition: string) {
    return db.prepare(
      `SELECT ${columns} FROM deliveries WHERE receiver_id = ? AND ${condition} ORDER BY sequence`,
    )
  }

  function keep(id: string, delivery: KeptDelivery): void {
    const { position, type, at, plantId, attempts, plant } = delivery
    const { dueAt = null, lastStatus = null, lastError = null } = delivery
    const state = [attempts, dueAt, lastStatus, lastError] as const
    if (plant === undefined) update.run(...state, id, position)
    else put.run(id, position, type, at, plantId, ...state, plant.name, plant.tag ?? null)
  }

  return {
    keep,

    /** Keeps and deletes what a sender has saved. */
    save(id: string, kept: readonly KeptDelivery[], done: readonly string[]): void {
      for (const delivery of kept) keep(id, delivery)
      for (const position of done) deleteOne.run(id, position)
      if (kept.some(({ dueAt }) => dueAt === undefined)) forgetFailures.run({ id })
    },

    deleteAll(id: string): void {
      deleteAll.run(id)
    },

    retryFailures(id: string, dueAt: number): number {
      return Number(retryFailures.run(dueAt, id).changes)
    },

    list(id: string, state: 'waiting' | 'failed'): Delivery[] {
      return (select[state].all(id) as unknown as DeliveryRow[]).map(toDelivery)
    },

    findPlant(id: string, position: string): StoredPlant | undefined {
      const row = selectPlant.get(id, position) as PlantRow | undefined
      if (row === undefined) return undefined
      const { plant_id, name, tag } = row
      return tag === null ? { id: plant_id, name } : { id: plant_id, name, tag }
    },
  }
}
