import { type ReceiverRow, toReceiver, toReceiverRow } from '../receiver-row.ts'
import {
  type AddedDelivery,
  type Claim,
  maxReceivers,
  type Receiver,
  type ReceiverChange,
  type ReceiverStore,
  type Saved,
  type Taken,
} from '../receivers.ts'
import { deliveryStatements } from './deliveries.ts'
import { insertRow, inTransaction, type Sql } from './sql.ts'

type Run = <Value>(statements: (sql: Sql) => Promise<Value>) => Promise<Value>

/** Builds the part of the store for receivers, given a way to read and one to write. */
export function buildReceiverStore(read: Run, write: Run): ReceiverStore {
  return {
    add: (receiver) => write((sql) => statements.add(sql, receiver)),
    list: () => read(statements.list),
    change: (id, one) => write((sql) => statements.change(sql, id, one)),
    remove: (id) => write((sql) => statements.remove(sql, id)),
    revision: () => read(statements.revision),
    claim: (owner, leaseMs) => write((sql) => statements.claim(sql, owner, leaseMs)),
    release: (owner) => write((sql) => statements.release(sql, owner)),
    take: (owner, taken) => write((sql) => statements.take(sql, owner, taken)),
    save: (owner, saved) => write((sql) => statements.save(sql, owner, saved)),
    listDeliveries: (id, state, limit) =>
      read((sql) => deliveryStatements.list(sql, id, state, limit)),
    findBody: (id, position) => read((sql) => deliveryStatements.findBody(sql, id, position)),
    listBacklogs: () => read(deliveryStatements.listBacklogs),
    retryFailures: (id, dueAt) => write((sql) => deliveryStatements.retryFailures(sql, id, dueAt)),
    addDelivery: (id, delivery) => write((sql) => statements.addDelivery(sql, id, delivery)),
  }
}

/** The statements on receivers. Each is atomic. */
const statements = {
  add(sql: Sql, receiver: Receiver): Promise<'added' | 'too many'> {
    return inTransaction(sql, async () => {
      // This locks the row, so that of two concurrent adds the second counts the first.
      await bumpRevision(sql)
      const [row] = await sql<[{ count: string }]>`
        SELECT pg_catalog.count(*) AS count FROM plant_store.receivers`
      if (Number(row.count) >= maxReceivers) return 'too many'
      await insertRow(sql, 'receivers', toReceiverRow(receiver))
      return 'added'
    })
  },

  async list(sql: Sql): Promise<Receiver[]> {
    const rows = await sql<ReceiverRow[]>`
      SELECT * FROM plant_store.receivers ORDER BY created_at, id COLLATE pg_catalog."C"`
    return rows.map(toReceiver)
  },

  change(sql: Sql, id: string, one: ReceiverChange): Promise<'changed' | 'unknown'> {
    return inTransaction(sql, () => change(sql, id, one))
  },

  remove(sql: Sql, id: string): Promise<'removed' | 'unknown'> {
    return inTransaction(sql, async () => {
      const { count } = await sql`DELETE FROM plant_store.receivers WHERE id = ${id}`
      if (count === 0) return 'unknown'
      await sql`DELETE FROM plant_store.deliveries WHERE receiver_id = ${id}`
      await bumpRevision(sql)
      return 'removed'
    })
  },

  async revision(sql: Sql): Promise<bigint> {
    const [row] = await sql<[{ revision: string }]>`
      SELECT revision FROM plant_store.receiver_revision`
    return BigInt(row.revision)
  },

  // Uses the clock of the database, which all processes share. A lease that ends too far in the
  // future was claimed before that clock was set back.
  async claim(sql: Sql, owner: string, leaseMs: number): Promise<Claim[]> {
    const rows = await sql<{ id: string; lease_epoch: string }[]>`
      WITH clock AS (SELECT (extract(epoch FROM pg_catalog.clock_timestamp()) * 1000::numeric)::bigint AS now),
      free AS (SELECT id, now FROM plant_store.receivers, clock
        WHERE state = 'active' AND (lease_owner IS NULL OR lease_owner = ${owner}
          OR lease_until <= now OR lease_until > now + 2 * ${leaseMs}::bigint)
        ORDER BY id FOR UPDATE OF receivers SKIP LOCKED)
      UPDATE plant_store.receivers SET lease_owner = ${owner}, lease_until = now + ${leaseMs}::bigint,
        lease_epoch = lease_epoch + (lease_owner IS DISTINCT FROM ${owner})::int
      FROM free WHERE receivers.id = free.id RETURNING receivers.id, lease_epoch`
    return rows.map(({ id, lease_epoch }) => ({ id, epoch: Number(lease_epoch) }))
  },

  async release(sql: Sql, owner: string): Promise<void> {
    await sql`UPDATE plant_store.receivers SET lease_owner = NULL WHERE lease_owner = ${owner}`
  },

  async take(sql: Sql, owner: string, taken: readonly Taken[]): Promise<string[]> {
    const lost: string[] = []
    for (const one of taken) {
      if (!(await deliveryStatements.take(sql, owner, one))) lost.push(one.id)
    }
    return lost
  },

  async save(sql: Sql, owner: string, saved: readonly Saved[]): Promise<string[]> {
    const lost: string[] = []
    for (const one of saved) if (!(await saveOne(sql, owner, one))) lost.push(one.id)
    return lost
  },

  addDelivery(sql: Sql, id: string, delivery: AddedDelivery): Promise<void> {
    return inTransaction(sql, async () => {
      await deliveryStatements.add(sql, id, delivery)
      await bumpRevision(sql)
    })
  },
}

function saveOne(sql: Sql, owner: string, saved: Saved): Promise<boolean> {
  const { id, pause } = saved
  if (pause === undefined) return deliveryStatements.save(sql, owner, saved)
  return inTransaction(sql, async () => {
    const isHeld = await deliveryStatements.save(sql, owner, saved)
    if (isHeld) await change(sql, id, { kind: 'pause', reason: pause })
    return isHeld
  })
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
