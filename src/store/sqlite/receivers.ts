import type { DatabaseSync } from 'node:sqlite'
import { type ReceiverRow, toReceiver, toReceiverRow } from '../receiver-row.ts'
import {
  type AddedDelivery,
  type Claim,
  maxReceivers,
  type Receiver,
  type ReceiverChange,
  type Saved,
  type Taken,
} from '../receivers.ts'
import { buildDeliveryStatements } from './deliveries.ts'

const columns = `id, url, types, secret, previous_secret, previous_until, state, reason, created_at,
  position, ahead, last_success_at, last_failure_at, last_failure, failing_since`

/** The statements on receivers. Those that write run inside the transaction of a batch. */
export function buildReceiverStatements(db: DatabaseSync) {
  const insert = db.prepare(
    `INSERT INTO receivers (${columns})
     SELECT :id, :url, :types, :secret, :previous_secret, :previous_until, :state, :reason,
       :created_at, :position, :ahead, :last_success_at, :last_failure_at, :last_failure,
       :failing_since
     WHERE (SELECT count(*) FROM receivers) < ${maxReceivers}`,
  )
  const selectAll = db.prepare(`SELECT ${columns} FROM receivers ORDER BY created_at, id`)
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
     WHERE state = 'active' AND (lease_owner IS NULL OR lease_owner = :owner
       OR lease_until <= :now OR lease_until > :now + 2 * :leaseMs)
     RETURNING id, lease_epoch`,
  )
  const release = db.prepare('UPDATE receivers SET lease_owner = NULL WHERE lease_owner = ?')
  const isMine = 'id = ? AND lease_owner = ? AND lease_epoch = ?'
  const move = db.prepare(
    `UPDATE receivers SET position = ?, ahead = ?, reason = coalesce(?, reason) WHERE ${isMine}`,
  )
  const setTimes = db.prepare(
    `UPDATE receivers SET last_success_at = ?, last_failure_at = ?, last_failure = ?,
       failing_since = ? WHERE ${isMine}`,
  )
  const deliveries = buildDeliveryStatements(db)

  function change(id: string, one: ReceiverChange): 'changed' | 'unknown' {
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

  function takeOne(owner: string, taken: Taken): boolean {
    const { id, epoch, position, ahead, gap = null } = taken
    if (move.run(position, ahead.join(' '), gap, id, owner, epoch).changes === 0n) return false
    for (const delivery of taken.deliveries) deliveries.insert(id, delivery)
    return true
  }

  function saveOne(owner: string, { id, epoch, times, done, failed, pause }: Saved): boolean {
    const { lastSuccessAt = null, lastFailureAt = null } = times
    const { lastFailure = null, failingSince = null } = times
    const values = [lastSuccessAt, lastFailureAt, lastFailure, failingSince] as const
    if (setTimes.run(...values, id, owner, epoch).changes === 0n) return false
    deliveries.save(id, done, failed)
    if (pause !== undefined) change(id, { kind: 'pause', reason: pause })
    return true
  }

  const writes = {
    add(receiver: Receiver): 'added' | 'too many' {
      if (insert.run(toReceiverRow(receiver)).changes === 0n) return 'too many'
      bumpRevision.run()
      return 'added'
    },

    change,

    remove(id: string): 'removed' | 'unknown' {
      if (remove.run(id).changes === 0n) return 'unknown'
      deliveries.deleteAll(id)
      bumpRevision.run()
      return 'removed'
    },

    claim(owner: string, leaseMs: number, now: number): Claim[] {
      const rows = claim.all({ owner, leaseMs, now }) as { id: string; lease_epoch: bigint }[]
      return rows.map(({ id, lease_epoch }) => ({ id, epoch: Number(lease_epoch) }))
    },

    release(owner: string): void {
      release.run(owner)
    },

    take(owner: string, taken: readonly Taken[]): string[] {
      return taken.filter((one) => !takeOne(owner, one)).map(({ id }) => id)
    },

    save(owner: string, saved: readonly Saved[]): string[] {
      return saved.filter((one) => !saveOne(owner, one)).map(({ id }) => id)
    },

    retryFailures(id: string, dueAt: number): number {
      bumpRevision.run()
      return deliveries.retryFailures(id, dueAt)
    },

    addDelivery(id: string, delivery: AddedDelivery): void {
      bumpRevision.run()
      deliveries.add(id, delivery)
    },
  }

  return {
    writes,
    list: (): Receiver[] => (selectAll.all() as unknown as ReceiverRow[]).map(toReceiver),
    revision: (): bigint => (selectRevision.get() as { revision: bigint }).revision,
    listDeliveries: deliveries.list,
    findBody: deliveries.findBody,
    listBacklogs: deliveries.listBacklogs,
  }
}
