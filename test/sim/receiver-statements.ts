/**
 * The statements on receivers and deliveries. The conditions of takes and saves are read from their
 * text: one that is missing there is not checked here.
 */
import {
  type Delivery,
  type NewDelivery,
  type Receiver,
  type Rows,
  server,
  type Tables,
} from './postgres.ts'
import type { Call, Statement } from './statements.ts'
import { world } from './world.ts'

export const receiverStatements: Statement[] = [
  [/SELECT \* FROM plant_store\.receivers/, ({ tables }) => [...tables.receivers.values()]],
  [
    /SELECT revision FROM plant_store\.receiver_revision/,
    ({ tables }) => [{ revision: String(tables.revision) }],
  ],
  [/^UPDATE plant_store\.receiver_revision SET revision = revision \+ 1$/, bumpRevision],
  [
    /^UPDATE plant_store\.receivers SET state = 'paused'/,
    (call) => changeReceiver(call, { state: 'paused' }),
  ],
  [
    /^UPDATE plant_store\.receivers SET state = 'active'/,
    (call) => changeReceiver(call, { state: 'active', failing_since: null }),
  ],
  [
    /^UPDATE plant_store\.receivers SET secret = \$1/,
    (call) => changeReceiver(call, { secret: String(call.values[0]) }),
  ],
  [/WITH clock AS/, claim],
  [/^UPDATE plant_store\.receivers SET lease_owner = NULL/, release],
  [/WITH held AS .*added AS/s, take],
  [/WITH held AS .*gone AS/s, save],
  [/WHERE receiver_id = \$1 AND due_at IS (NOT )?NULL\s+ORDER BY place LIMIT \$2$/, listDeliveries],
  [/UPDATE plant_store\.deliveries SET due_at = \$1, attempts = 0/, retryFailures],
  // No run has more failures than are kept.
  [/DELETE FROM plant_store\.deliveries WHERE receiver_id = \$1 AND due_at IS NULL/, () => []],
]

function counted(count: number): Rows {
  return Object.assign([], { count })
}

function bumpRevision({ write }: Call): Rows {
  write(({ revision }) => ({ revision: revision + 1 }))
  return counted(1)
}

function setReceiver({ receivers }: Tables, id: string, columns: Partial<Receiver>) {
  const row = receivers.get(id)
  return row && { receivers: new Map(receivers).set(id, { ...row, ...columns }) }
}

function changeReceiver({ find, write, tables }: Call, columns: Partial<Receiver>): Rows {
  const id = find<string>(/WHERE id = \$(\d+)/)
  write((before) => ({ ...setReceiver(before, id, columns) }))
  return counted(tables.receivers.has(id) ? 1 : 0)
}

function claim({ text, find, write, tables }: Call): Rows {
  const owner = find<string>(/lease_owner IS DISTINCT FROM \$(\d+)/)
  const leaseMs = find<number>(/lease_until > now \+ 2 \* \$(\d+)/)
  const isFirst = find<boolean>(/lease_epoch = CASE WHEN \$(\d+) OR/)
  const now = Date.now()
  const least = text.includes('greatest(lease_epoch + 1, now)') ? now : 0
  const claims: Rows = []
  for (const {
    id,
    state,
    lease_owner,
    lease_until: until,
    lease_epoch,
  } of tables.receivers.values()) {
    const isOwn = lease_owner === owner
    const isFree = lease_owner === null || until <= now || until > now + 2 * leaseMs
    if (!isOwn && (state !== 'active' || !isFree)) continue
    const epoch = isFirst || !isOwn ? Math.max(lease_epoch + 1, least) : lease_epoch
    claims.push({ id, lease_epoch: String(epoch) })
    const lease = { lease_owner: owner, lease_until: now + leaseMs, lease_epoch: epoch }
    write((before) => ({ ...setReceiver(before, id, lease) }))
  }
  return claims
}

function release({ values: [owner], write, tables }: Call): Rows {
  for (const { id, lease_owner } of tables.receivers.values()) {
    if (lease_owner === owner)
      write((before) => ({ ...setReceiver(before, id, { lease_owner: null }) }))
  }
  return []
}

/** The receiver that meets the conditions of the statement. */
function findHeld({ text, values, tables }: Call): Receiver | undefined {
  const [, where = ''] = /UPDATE plant_store\.receivers .*?WHERE (.*?) RETURNING/s.exec(text) ?? []
  const conditions = [...where.matchAll(/(\w+) = \$(\d+)/g)]
  return [...tables.receivers.values()].find((row) =>
    conditions.every(
      ([, column = '', number]) => String(row[column]) === String(values[Number(number) - 1]),
    ),
  )
}

/** The rows that `unnest` makes of arrays. */
function unnest({ text, values }: Call): Record<string, unknown>[] {
  const names = /AS new \(([^)]*)\)/.exec(text)?.[1]?.split(', ') ?? []
  const arrays = [...text.matchAll(/unnest\(\$(\d+)/g)].map(
    ([, number]) => values[Number(number) - 1] as unknown[],
  )
  const rows = arrays[0] ?? []
  return rows.map((_, row) =>
    Object.fromEntries(names.map((name, column) => [name, arrays[column]?.[row]])),
  )
}

function take(call: Call): Rows {
  const held = findHeld(call)
  if (held === undefined) return [{ held: '0' }]
  const { find, write, backend } = call
  const position = find<string>(/SET position = \$(\d+)/)
  const ahead = find<string>(/ahead = \$(\d+)/)
  const reason = find<string | null>(/reason = coalesce\(\$(\d+), reason\)/) ?? held.reason
  const added = unnest(call) as NewDelivery[]
  const names = added.map((row) => row.position)
  world().note(`server: ${backend.process.name} takes ${names.join(' ')}, up to ${position}`)
  write((tables) => {
    const deliveries = new Map(tables.deliveries)
    for (const row of added) {
      const key = `${held.id} ${row.place}`
      const columns = { receiver_id: held.id, attempts: 0, due_at: row.at }
      const empty = { last_status: null, last_error: null }
      if (!deliveries.has(key)) deliveries.set(key, { ...empty, ...row, ...columns })
    }
    return { ...setReceiver(tables, held.id, { position, ahead, reason }), deliveries }
  }, 'not synced')
  return [{ held: '1' }]
}

function save(call: Call): Rows {
  const held = findHeld(call)
  if (held === undefined) return [{ held: '0' }]
  const { find, write, backend } = call
  const done = find<string[]>(/place = ANY\(\$(\d+)::text\[\]\)/)
  const reason = find<string | null>(/CASE WHEN \$(\d+)::text IS NULL THEN state/)
  const failed = unnest(call) as Pick<Delivery, 'place' | 'due_at'>[]
  const names = failed.map(({ place }) => place)
  world().note(
    `server: ${backend.process.name} saves ${done.join(' ')}; failed: ${names.join(' ')}`,
  )
  write((tables) => {
    const deliveries = new Map(tables.deliveries)
    for (const place of done) deliveries.delete(`${held.id} ${place}`)
    for (const row of failed) {
      const key = `${held.id} ${row.place}`
      const before = deliveries.get(key)
      if (before === undefined) continue
      deliveries.set(key, { ...before, ...row })
      if (row.due_at === null) server().truth.noteGivenUp(held.id, before.position)
    }
    if (reason === null) return { deliveries }
    const paused = setReceiver(tables, held.id, { state: 'paused', reason })
    return { ...paused, revision: tables.revision + 1, deliveries }
  }, 'not synced')
  return [{ held: '1' }]
}

function listDeliveries({ text, values: [id, limit], tables }: Call): Rows {
  const isFailed = !text.includes('due_at IS NOT NULL')
  return [...tables.deliveries.values()]
    .filter((row) => row.receiver_id === id && (row.due_at === null) === isFailed)
    .sort((one, other) => (one.place < other.place ? -1 : 1))
    .slice(0, Number(limit))
}

function retryFailures({ values: [dueAt, id], tables, write }: Call): Rows {
  const isFailed = (row: Delivery) => row.receiver_id === id && row.due_at === null
  write(({ deliveries }) => {
    const after = new Map(deliveries)
    for (const [key, row] of deliveries) {
      if (isFailed(row)) after.set(key, { ...row, due_at: Number(dueAt), attempts: 0 })
    }
    return { deliveries: after }
  })
  return counted([...tables.deliveries.values()].filter(isFailed).length)
}
