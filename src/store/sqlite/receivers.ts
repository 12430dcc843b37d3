import type { DatabaseSync } from 'node:sqlite'
import { type ReceiverRow, toReceiver, toReceiverRow } from '../receiver-row.ts'
import {
  type Claim,
  type KeptDelivery,
  maxReceivers,
  type Receiver,
  type ReceiverChange,
  type SavedProgress,
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
  // A lease that ends too far in the future was made before the clock was set back.
  const claim = db.prepare(
    `UPDATE receivers SET lease_owner = :owner, lease_until = :now + :leaseMs,
       lease_epoch = lease_epoch + (lease_owner IS NOT :owner)
     WHERE state = 'active' AND (lease_owner IS NULL OR lease_owner = :owner
       OR lease_until <= :now OR lease_until > :now + 2 * :leaseMs)
     RETURNING id, lease_epoch`,
  )
  const release = db.prepare('UPDATE receivers SET lease_owner = NULL WHERE lease_owner = ?')
  const saveProgress = db.prepare(
    `UPDATE receivers SET position = ?, ahead = ?, last_success_at = ?, last_failure_at = ?,
       last_failure = ?, failing_since = ? WHERE id = ? AND lease_owner = ? AND lease_epoch = ?`,
  )
  const reportGap = db.prepare('UPDATE receivers SET reason = ? WHERE id = ?')
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

  function saveOne(owner: string, saved: SavedProgress): boolean {
    const { id, epoch, progress } = saved
    const { lastSuccessAt = null, lastFailureAt = null } = progress
    const { lastFailure = null, failingSince = null } = progress
    const { changes } = saveProgress.run(
      progress.position,
      progress.ahead.join(' '),
      lastSuccessAt,
      lastFailureAt,
      lastFailure,
      failingSince,
      id,
      owner,
      epoch,
    )
    if (changes === 0n) return false
    deliveries.save(id, saved.kept, saved.done)
    if (saved.gap !== undefined) reportGap.run(saved.gap, id)
    if (saved.pause !== undefined) change(id, { kind: 'pause', reason: saved.pause })
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

    save(owner: string, saved: readonly SavedProgress[]): string[] {
      return saved.filter((one) => !saveOne(owner, one)).map(({ id }) => id)
    },

    retryFailures(id: string, dueAt: number): number {
      bumpRevision.run()
      return deliveries.retryFailures(id, dueAt)
    },

    addDelivery(id: string, delivery: KeptDelivery): void {
      bumpRevision.run()
      deliveries.keep(id, delivery)
    },
  }

  return {
    writes,
    list: (): Receiver[] => (selectAll.all() as unknown as ReceiverRow[]).map(toReceiver),
    revision: (): bigint => (selectRevision.get() as { revision: bigint }).revision,
    listDeliveries: deliveries.list,
    findPlant: deliveries.findPlant,
  }
}
