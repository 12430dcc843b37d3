import { toOrder } from '../../journal/position.ts'
import type { Claim, Saved, Taken } from '../receivers.ts'
import { forgetFailures, raiseRevision } from '../receivers.ts'
import { type Steps, sql } from '../steps.ts'

/** Claims leases by the clock of this machine, which all processes of the store share. */
export function* claimLeases(owner: string, leaseMs: number): Steps<Claim[]> {
  const now = Date.now()
  // A lease that ends too far in the future was claimed before the clock was set back.
  const rows = yield sql`
    UPDATE receivers SET lease_owner = ${owner}, lease_until = ${now + leaseMs},
      lease_epoch = lease_epoch + (lease_owner IS NOT ${owner})
    WHERE lease_owner = ${owner} OR (state = 'active' AND (lease_owner IS NULL
      OR lease_until <= ${now} OR lease_until > ${now + 2 * leaseMs}))
    RETURNING id, lease_epoch`
  return rows.map(({ id, lease_epoch }) => ({ id: String(id), epoch: Number(lease_epoch) }))
}

export function* takeDeliveries(owner: string, taken: Taken): Steps<boolean> {
  const { id, epoch, before, position: end, ahead, gap = null } = taken
  const { count } = yield sql`
    UPDATE receivers SET position = ${end}, ahead = ${ahead.join(' ')},
      reason = coalesce(${gap}, reason)
    WHERE id = ${id} AND lease_owner = ${owner} AND lease_epoch = ${epoch}
      AND position = ${before}`
  if (count === 0) return false
  for (const { position, type, at, plantId, body } of taken.deliveries) {
    yield sql`
      INSERT INTO deliveries (receiver_id, place, position, type, at, plant_id, attempts, due_at,
        body)
      VALUES (${id}, ${toOrder(position)}, ${position}, ${type}, ${at}, ${plantId}, 0, ${at},
        ${body})
      ON CONFLICT DO NOTHING`
  }
  return true
}

export function* saveOutcomes(owner: string, saved: Saved): Steps<boolean> {
  const { id, epoch, times, done, failed, pause } = saved
  const { lastSuccessAt = null, lastFailureAt = null } = times
  const { lastFailure = null, failingSince = null } = times
  const { count } = yield sql`
    UPDATE receivers SET last_success_at = ${lastSuccessAt}, last_failure_at = ${lastFailureAt},
      last_failure = ${lastFailure}, failing_since = ${failingSince}
    WHERE id = ${id} AND lease_owner = ${owner} AND lease_epoch = ${epoch}`
  if (count === 0) return false
  for (const position of done) {
    yield sql`DELETE FROM deliveries WHERE receiver_id = ${id} AND place = ${toOrder(position)}`
  }
  for (const { position, attempts, dueAt = null, lastStatus = null, lastError = null } of failed) {
    yield sql`
      UPDATE deliveries SET attempts = ${attempts}, due_at = ${dueAt},
        last_status = ${lastStatus}, last_error = ${lastError}
      WHERE receiver_id = ${id} AND place = ${toOrder(position)}`
  }
  if (failed.some(({ dueAt }) => dueAt === undefined)) yield* forgetFailures(id)
  if (pause === undefined) return true
  yield sql`UPDATE receivers SET state = 'paused', reason = ${pause} WHERE id = ${id}`
  yield* raiseRevision()
  return true
}
