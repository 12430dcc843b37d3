import type { DatabaseSync } from 'node:sqlite'
import { toOrder } from '../../journal/position.ts'
import {
  type Attempted,
  type Backlog,
  type Claim,
  type Delivery,
  maxFailures,
  maxReceivers,
  type NewDelivery,
  type Receiver,
  type ReceiverChange,
  type Saved,
  type Taken,
} from '../receivers.ts'
import {
  type BacklogRow,
  type DeliveryRow,
  type ReceiverRow,
  receiverColumns,
  toBacklog,
  toDelivery,
  toReceiver,
  toReceiverRow,
} from '../table-rows.ts'
import { toParameters } from './open-database.ts'

/**
 * The statements on receivers and their deliveries. Those that write run inside the transaction of
 * a batch.
 */
export function buildReceiverStatements(db: DatabaseSync) {
  const insert = db.prepare(
    `INSERT INTO receivers (${receiverColumns}) SELECT ${toParameters(receiverColumns)}
     WHERE (SELECT count(*) FROM receivers) < ${maxReceivers}`,
  )
  const selectAll = db.prepare(`SELECT ${receiverColumns} FROM receivers ORDER BY created_at, id`)
  const selectOne = db.prepare('SELECT id FROM receivers WHERE id = ?')
  const pause = db.prepare("UPDATE receivers SET state = 'paused', reason = ? WHERE id = ?")
  const resume = db.prepare(
    "UPDATE receivers SET state = 'active', reason = NULL, failing_since = NULL WHERE id = ?",
  )
  const setSecrets = db.prepare(
    'UPDATE receivers SET secret = ?, previous_secret = ?, previous_until = ? WHERE id = ?',
  )
  const remove = db.prepare('DELETE FROM receivers WHERE id = ?')
  const bumpRevision = db.prepare('UPDATE receiver_revision SET revision = revision + 1')
  const selectRevision = db.prepare('SELECT revision FROM receiver_revision')
  // A lease that ends too far in the future was claimed before the clock was set back.
  const claim = db.prepare(
    `UPDATE receivers SET lease_owner = :owner, lease_until = :now + :leaseMs,
       lease_epoch = lease_epoch + (lease_owner IS NOT :owner)
     WHERE lease_owner = :owner OR (state = 'active' AND (lease_owner IS NULL
       OR lease_until <= :now OR lease_until > :now + 2 * :leaseMs))
     RETURNING id, lease_epoch`,
  )
  const release = db.prepare('UPDATE receivers SET lease_owner = NULL WHERE lease_owner = ?')
  const isMine = 'id = ? AND lease_owner = ? AND lease_epoch = ?'
  const move = db.prepare(
    `UPDATE receivers SET position = ?, ahead = ?, reason = coalesce(?, reason)
     WHERE ${isMine} AND position = ?`,
  )
  const setTimes = db.prepare(
    `UPDATE receivers SET last_success_at = ?, last_failure_at = ?, last_failure = ?,
       failing_since = ? WHERE ${isMine}`,
  )
  const deliveries = buildDeliveryStatements(db)

  function changeReceiver(id: string, one: ReceiverChange): 'changed' | 'unknown' {
    const isFound = runChange(id, one).changes === 1n
    if (isFound) bumpRevision.run()
    return isFound ? 'changed' : 'unknown'
  }

  function runChange(id: string, one: ReceiverChange) {
    if (one.kind === 'pause') return pause.run(one.reason, id)
    if (one.kind === 'resume') return resume.run(id)
    const { current, previous = null, previousUntil = null } = one.secrets
    return setSecrets.run(current, previous, previousUntil, id)
  }

  const writes = {
    addReceiver(receiver: Receiver): 'added' | 'too many' {
      if (insert.run(toReceiverRow(receiver)).changes === 0n) return 'too many'
      bumpRevision.run()
      return 'added'
    },

    changeReceiver,

    removeReceiver(id: string): 'removed' | 'unknown' {
      if (remove.run(id).changes === 0n) return 'unknown'
      deliveries.deleteAll.run(id)
      bumpRevision.run()
      return 'removed'
    },

    claimLeases(owner: string, leaseMs: number, now: number): Claim[] {
      const rows = claim.all({ owner, leaseMs, now }) as { id: string; lease_epoch: bigint }[]
      return rows.map(({ id, lease_epoch }) => ({ id, epoch: Number(lease_epoch) }))
    },

    releaseLeases(owner: string): void {
      release.run(owner)
    },

    takeDeliveries(owner: string, taken: Taken): boolean {
      const { id, epoch, before, position, ahead, gap = null } = taken
      const moved = move.run(position, ahead.join(' '), gap, id, owner, epoch, before)
      if (moved.changes === 0n) return false
      for (const delivery of taken.deliveries) deliveries.insert(id, delivery)
      return true
    },

    saveOutcomes(owner: string, { id, epoch, times, done, failed, pause }: Saved): boolean {
      const { lastSuccessAt = null, lastFailureAt = null } = times
      const { lastFailure = null, failingSince = null } = times
      const values = [lastSuccessAt, lastFailureAt, lastFailure, failingSince] as const
      if (setTimes.run(...values, id, owner, epoch).changes === 0n) return false
      deliveries.save(id, done, failed)
      if (pause !== undefined) changeReceiver(id, { kind: 'pause', reason: pause })
      return true
    },

    retryFailures(id: string, dueAt: number, position?: string): number {
      bumpRevision.run()
      return deliveries.retryFailures(id, dueAt, position)
    },

    addDelivery(id: string, delivery: Delivery): 'added' | 'unknown' {
      if (selectOne.get(id) === undefined) return 'unknown'
      bumpRevision.run()
      deliveries.add(id, delivery)
      return 'added'
    },
  }

  return {
    writes,
    list: (): Receiver[] => (selectAll.all() as unknown as ReceiverRow[]).map(toReceiver),
    revision: (): bigint => (selectRevision.get() as { revision: bigint }).revision,
    listDeliveries: deliveries.list,
    listBacklogs: deliveries.listBacklogs,
  }
}

const deliveryColumns = 'position, type, at, plant_id, attempts, due_at, last_status, last_error'

function buildDeliveryStatements(db: DatabaseSync) {
  const put = `INSERT INTO deliveries (receiver_id, place, ${deliveryColumns}, body)
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
  const forgetFailures = db.prepare(
    `DELETE FROM deliveries WHERE receiver_id = :id AND due_at IS NULL AND place <= (
       SELECT place FROM deliveries WHERE receiver_id = :id AND due_at IS NULL
       ORDER BY place DESC LIMIT 1 OFFSET ${maxFailures})`,
  )
  const select = {
    waiting: selectWhere('due_at IS NOT NULL'),
    failed: selectWhere('due_at IS NULL'),
  }
  const retry = db.prepare(
    `UPDATE deliveries SET due_at = ?1, attempts = 0
     WHERE receiver_id = ?2 AND due_at IS NULL AND (?3 IS NULL OR place = ?3)`,
  )
  // With min(), SQLite takes the other columns from the row that has the minimum.
  const selectBacklogs = db.prepare(
    `SELECT receiver_id, count(*) AS changes, min(place), position, at FROM deliveries
     WHERE due_at IS NOT NULL GROUP BY receiver_id`,
  )

  function selectWhere(condition: string) {
    return db.prepare(
      `SELECT ${deliveryColumns}, body FROM deliveries
       WHERE receiver_id = ? AND ${condition} ORDER BY place LIMIT ?`,
    )
  }

  return {
    deleteAll: db.prepare('DELETE FROM deliveries WHERE receiver_id = ?'),
    insert(id: string, { position, type, at, plantId, body }: NewDelivery): void {
      insert.run(id, toOrder(position), position, type, at, plantId, 0, at, null, null, body)
    },

    add(id: string, delivery: Delivery): void {
      const { position, type, at, plantId, attempts, body } = delivery
      const { dueAt = null, lastStatus = null, lastError = null } = delivery
      const state = [attempts, dueAt, lastStatus, lastError] as const
      insertOrUpdate.run(id, toOrder(position), position, type, at, plantId, ...state, body)
    },

    retryFailures(id: string, dueAt: number, position: string | undefined): number {
      const place = position === undefined ? null : toOrder(position)
      return Number(retry.run(dueAt, id, place).changes)
    },

    save(id: string, done: readonly string[], failed: readonly Attempted[]): void {
      for (const position of done) deleteOne.run(id, toOrder(position))
      for (const one of failed) {
        const { position, attempts, dueAt = null, lastStatus = null, lastError = null } = one
        update.run(attempts, dueAt, lastStatus, lastError, id, toOrder(position))
      }
      if (failed.some(({ dueAt }) => dueAt === undefined)) forgetFailures.run({ id })
    },

    list(id: string, state: 'waiting' | 'failed', limit = -1): Delivery[] {
      return (select[state].all(id, limit) as unknown as DeliveryRow[]).map(toDelivery)
    },

    listBacklogs(): Backlog[] {
      return (selectBacklogs.all() as unknown as BacklogRow[]).map(toBacklog)
    },
  }
}
