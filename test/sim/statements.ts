/**
 * What each statement of the source does on the simulated server. Simple ones are read (`select`,
 * `update`); others are recognised by their text, and the places of their parameters are read from
 * it. So are the conditions of takes and saves: one that is missing there is not checked here. A
 * statement that is not known fails the run.
 */
import {
  type Backend,
  type Delivery,
  type Effect,
  type NewDelivery,
  plantIds,
  type Receiver,
  type Row,
  type Rows,
  server,
  since,
  type Tables,
} from './postgres.ts'
import { world } from './world.ts'

/** One call of a statement. */
interface Call {
  /** The text in one line. */
  readonly text: string
  readonly values: readonly unknown[]
  readonly backend: Backend
  readonly tables: Tables
  /** The value whose parameter a pattern finds in the text. */
  find<Value>(pattern: RegExp): Value
  /** Changes the tables: when the transaction commits, or at once if there is none. */
  write(effect: Effect): void
}

type Run = (call: Call) => Rows | undefined | Promise<Rows | undefined>

/** The statements that are not of the source: locks plants and changes them, in any way. */
export const changePlants = 'change plants'
/** Adds their row to the journal. */
export const addRow = 'add a row to the journal'

const known = new Map<string, { readonly line: string; readonly run: Run }>()

/** Runs a statement. */
export async function run(
  backend: Backend,
  text: string,
  values: readonly unknown[],
): Promise<Rows> {
  let found = known.get(text)
  if (found === undefined) {
    const line = text.replaceAll(/\s+/g, ' ').trim()
    const [, run] = statements.find(([pattern]) => pattern.test(line)) ?? []
    if (run === undefined) throw new Error(`test/sim does not know this statement: ${line}`)
    found = { line, run }
    known.set(text, found)
  }
  const { line } = found
  const { tables, write } = server()
  const rows = await found.run({
    ...{ text: line, values, backend, tables: tables() },
    find(pattern) {
      const [, number] = pattern.exec(line) ?? []
      if (number === undefined) throw new Error(`${pattern} is not in the statement: ${line}`)
      return values[Number(number) - 1] as never
    },
    write: (effect) =>
      write(
        backend,
        effect,
        line.includes("'synchronous_commit', 'off'") ? 'not synced' : 'synced',
      ),
  })
  return rows ?? []
}

const selectForm =
  /^SELECT (?:\*|\w*) ?FROM plant_store\.(\w+)(?: WHERE (.+?))?(?: ORDER BY place LIMIT \$(\d+))?( FOR UPDATE)?$/
const updateForm = /UPDATE plant_store\.(\w+) SET (.+?)(?: WHERE (.+?))?(?: RETURNING id\).*|$)/

const statements: [RegExp, Run][] = [
  [/^BEGIN$/, ({ backend }) => server().begin(backend)],
  [/^COMMIT$/, ({ backend }) => server().commit(backend)],
  [/^ROLLBACK$/, ({ backend }) => server().rollback(backend)],
  [/pg_is_in_recovery/, () => [{ readonly: 'off', schemas: '{pg_catalog}' }]],
  [/server_version_num/, () => [{ version: '180000', encoding: 'UTF8' }]],
  [/FROM pg_catalog\.pg_tables/, () => [{ exists: true }]],
  [/has_table_privilege/, () => [{ are_granted: true }]],
  [/pg_control_system/, () => [{ server: 'sim', database: 1 }]],
  [/set_config\('lock_timeout'/, () => undefined],

  [new RegExp(`^${changePlants}$`), change],
  [/FROM plant_store\.plants WHERE id >= \$1::bigint ORDER BY id LIMIT \$2/, listPlants],
  [/^LOCK TABLE plant_store\.plants/, ({ backend }) => server().lock(backend, plantIds)],

  [new RegExp(`^${addRow}$`), drawRow],
  [/string_agg\(virtualtransaction/, readHolders],
  [/LEFT JOIN LATERAL/, selectPage],
  [/LIMIT 1\) AS last ON seq >= since/, selectEnd],
  [/SELECT pg_catalog\.max\(seq\) AS last FROM plant_store\.journal$/, selectLast],
  [/SELECT seq, at, octet_length\(changes\) AS bytes FROM/, selectAfter],
  [/DELETE FROM plant_store\.journal WHERE seq <= \$1 AND seq < \(SELECT max/, deleteRows],
  [/AS is_behind/, ({ tables }) => [{ is_behind: server().lastValue() < lastSeq(tables) }]],
  [/SELECT pg_catalog\.setval/, ({ backend, tables }) => server().raise(backend, lastSeq(tables))],

  [/WITH clock AS/, claim],
  [/WITH held AS .*added AS/, take],
  [/WITH held AS .*gone AS/, save],
  // No run has more failures than are kept.
  [/DELETE FROM plant_store\.deliveries WHERE receiver_id = \$1 AND due_at IS NULL/, () => []],
  [selectForm, select],
  [updateForm, update],
]

async function change({ backend, values, write }: Call): Promise<Rows> {
  const [ids, names] = values as [string[], (string | null)[]]
  await server().lock(backend, ids)
  const plants = new Map(server().tables().plants)
  const found = ids.map((id, index) => {
    const [before = null, name = null] = [plants.get(id), names[index]]
    if (name === null) plants.delete(id)
    else plants.set(id, name)
    const kind = before === null ? 'c' : 'r'
    return { id, kind: name === null ? 'd' : kind, name: name ?? before }
  })
  write((tables) => {
    const after = new Map(tables.plants)
    for (const id of ids) {
      const name = plants.get(id)
      if (name === undefined) after.delete(id)
      else after.set(id, name)
    }
    return { plants: after }
  })
  return found
}

function listPlants({ values: [from, limit], tables }: Call): Rows {
  return [...tables.plants]
    .filter(([id]) => Number(id) >= Number(from))
    .sort(([one], [other]) => Number(one) - Number(other))
    .slice(0, Number(limit))
    .map(([id, name]) => [id, name, null]) as unknown as Rows
}

function drawRow({ backend, values }: Call): undefined {
  const [at, nonce, count, changes] = values as [number, number, number, string]
  server().draw(backend, { at, nonce, count, changes })
}

async function readHolders(call: Call): Promise<Rows> {
  const [row] = selectLast(call)
  // The locks are read after the snapshot of the rows is taken.
  await world().pause(world().between(0, 2))
  return [{ ...row, holders: server().holders().join(' ') || null }]
}

function selectLast({ tables: { journal } }: Call): Rows {
  return [{ last: toText(journal.at(-1)?.seq) }]
}

function selectPage({ find, tables }: Call): Rows {
  const from = find<number | null>(/coalesce\(\$(\d+)::bigint, life\.since\)/)
  const index = find<number>(/count - \$(\d+)::bigint/)
  const limit = find<number>(/row\.before < \$(\d+)::bigint/)
  const [{ id: journalId }] = tables.journal_life
  const rows: Rows = []
  let before = 0
  for (const { seq, at, ...row } of tables.journal) {
    if (seq < (from ?? since)) continue
    if (before >= limit) break
    const isFirst = seq === since
    rows.push({ ...row, journalId, seq: String(seq), at: String(at), isFirst })
    before += seq === from ? row.count - index : row.count
  }
  return rows.length > 0 ? rows : [{ journalId, seq: null }]
}

function selectEnd({ find, tables }: Call): Rows {
  const upTo = Number(find(/seq <= \$(\d+)::bigint/))
  const row = tables.journal.findLast(({ seq }) => seq <= upTo)
  return [{ ...row, id: tables.journal_life[0].id, seq: toText(row?.seq) }]
}

function selectAfter({ values: [after, limit], tables }: Call): Rows {
  const rows = tables.journal.filter(({ seq }) => seq > Number(after))
  return rows.slice(0, Number(limit)).map((row) => ({ ...row, bytes: row.changes.length }))
}

function deleteRows({ values: [upTo], tables, write }: Call): Rows {
  const isOld = ({ seq }: { seq: number }) => seq <= Number(upTo) && seq < lastSeq(tables)
  const deleted = tables.journal.filter(isOld)
  world().note(`server: rows up to ${upTo} are deleted`)
  server().truth.noteDeleted(deleted)
  write(({ journal }) => ({ journal: journal.filter((row) => !isOld(row)) }))
  return deleted.map(({ count }) => ({ count }))
}

function lastSeq({ journal }: Tables): number {
  return journal.at(-1)?.seq ?? since
}

function toText(value: number | undefined): string | null {
  return value === undefined ? null : String(value)
}

async function select({ text, values, backend }: Call): Promise<Rows> {
  const [, table = '', where, limit, isLocking] = selectForm.exec(text) ?? []
  if (isLocking !== undefined) await server().lock(backend, [table])
  const meets = toCondition(where, values)
  return rowsOf(server().tables(), table)
    .filter(meets)
    .sort((one, other) => (String(one.place) < String(other.place) ? -1 : 1))
    .slice(0, limit === undefined ? undefined : Number(values[Number(limit) - 1]))
}

function update({ text, values, tables, write }: Call): Rows {
  const { effect, found } = toUpdate(text, values, tables)
  write(effect)
  return Object.assign([], { count: found.length })
}

/** What an update changes, and the rows that it finds now. */
function toUpdate(text: string, values: readonly unknown[], tables: Tables) {
  const [, table = '', set = '', where] = updateForm.exec(text) ?? []
  const meets = toCondition(where, values)
  const columns = set.split(/, (?=\w+ = )/).map((part) => {
    const [name = '', expression = ''] = part.split(/ = (.*)/)
    return [name, toExpression(expression, values)] as const
  })
  const change = (row: Row): Row => ({
    ...row,
    ...Object.fromEntries(columns.map(([name, read]) => [name, read(row)])),
  })
  const effect: Effect = (before) => ({
    [table]: rowsOf(before, table).map((row) => (meets(row) ? change(row) : row)),
  })
  return { effect, found: rowsOf(tables, table).filter(meets) }
}

function rowsOf(tables: Tables, table: string): readonly Row[] {
  return (tables as unknown as Record<string, readonly Row[]>)[table] as readonly Row[]
}

function toCondition(where: string | undefined, values: readonly unknown[]) {
  const conditions = (where?.split(' AND ') ?? []).filter((one) => !/set_config/.test(one))
  const tests = conditions.map((condition): ((row: Row) => boolean) => {
    const [, column = '', how, expression = ''] =
      /^(\w+) (=|IS NOT DISTINCT FROM|IS NULL|IS NOT NULL) ?(.*)$/.exec(condition) ?? []
    if (how === 'IS NULL') return (row) => row[column] === null
    if (how === 'IS NOT NULL') return (row) => row[column] !== null
    if (how === undefined) throw new Error(`test/sim does not know this condition: ${condition}`)
    const read = toExpression(expression, values)
    return (row) => String(row[column]) === String(read(row))
  })
  return (row: Row) => tests.every((test) => test(row))
}

/** Reads an expression: a literal, a parameter, or one of a few forms. */
function toExpression(text: string, values: readonly unknown[]): (row: Row) => unknown {
  const value = (number = '') => values[Number(number) - 1]
  const forms: [RegExp, (row: Row, ...found: string[]) => unknown][] = [
    [/^\$(\d+)$/, (_, number) => value(number)],
    [/^NULL$/, () => null],
    [/^(\d+)$/, (_, digits) => Number(digits)],
    [/^'([^']*)'$/, (_, literal) => literal],
    [/^(\w+) \+ 1$/, (row, column = '') => Number(row[column]) + 1],
    [/^coalesce\(\$(\d+), (\w+)\)$/, (row, number, column = '') => value(number) ?? row[column]],
    [
      /^CASE WHEN \$(\d+)::text IS NULL THEN (\w+) ELSE '(\w+)' END$/,
      (row, number, column = '', literal) => (value(number) === null ? row[column] : literal),
    ],
    [
      /^replace\((\w+), \$(\d+), \$(\d+)\)$/,
      (row, column = '', from, to) =>
        String(row[column]).replaceAll(String(value(from)), String(value(to))),
    ],
  ]
  for (const [form, read] of forms) {
    const found = form.exec(text)
    if (found !== null) return (row) => read(row, ...found.slice(1))
  }
  throw new Error(`test/sim does not know this expression: ${text}`)
}

function claim({ text, find, write, tables }: Call): Rows {
  const owner = find<string>(/lease_owner IS DISTINCT FROM \$(\d+)/)
  const leaseMs = find<number>(/lease_until > now \+ 2 \* \$(\d+)/)
  const isFirst = find<boolean>(/lease_epoch = CASE WHEN \$(\d+) OR/)
  const now = Date.now()
  const least = text.includes('greatest(lease_epoch + 1, now)') ? now : 0
  const claimed = new Map<string, number>()
  for (const { id, state, lease_owner, lease_until: until, lease_epoch } of tables.receivers) {
    const isOwn = lease_owner === owner
    const isFree = lease_owner === null || until <= now || until > now + 2 * leaseMs
    if (!isOwn && (state !== 'active' || !isFree)) continue
    claimed.set(id, isFirst || !isOwn ? Math.max(lease_epoch + 1, least) : lease_epoch)
  }
  const lease = { lease_owner: owner, lease_until: now + leaseMs }
  write(({ receivers }) => ({
    receivers: receivers.map((row): Receiver => {
      const lease_epoch = claimed.get(row.id)
      return lease_epoch === undefined ? row : { ...row, ...lease, lease_epoch }
    }),
  }))
  return [...claimed].map(([id, epoch]) => ({ id, lease_epoch: String(epoch) }))
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
  const { text, values, tables, find, write, backend } = call
  const { effect, found } = toUpdate(text, values, tables)
  const [held] = found as Receiver[]
  if (held === undefined) return [{ held: '0' }]
  const added = unnest(call) as NewDelivery[]
  const names = added.map((row) => row.position).join(' ')
  world().note(
    `server: ${backend.process.name} takes ${names}, up to ${find(/SET position = \$(\d+)/)}`,
  )
  write((before) => {
    const there = new Set(before.deliveries.map((row) => `${row.receiver_id} ${row.place}`))
    const deliveries = added
      .filter(({ place }) => !there.has(`${held.id} ${place}`))
      .map((row): Delivery => {
        const unsent = { attempts: 0, due_at: row.at, last_status: null, last_error: null }
        return { ...row, receiver_id: held.id, ...unsent }
      })
    return { ...effect(before), deliveries: [...before.deliveries, ...deliveries] }
  })
  return [{ held: '1' }]
}

function save(call: Call): Rows {
  const { text, values, tables, find, write, backend } = call
  const { effect, found } = toUpdate(text, values, tables)
  const [held] = found as Receiver[]
  if (held === undefined) return [{ held: '0' }]
  const done = find<string[]>(/place = ANY\(\$(\d+)::text\[\]\)/)
  const isPaused = find(/CASE WHEN \$(\d+)::text IS NULL THEN state/) !== null
  const failed = unnest(call) as Pick<Delivery, 'place' | 'due_at'>[]
  const names = failed.map(({ place }) => place)
  world().note(
    `server: ${backend.process.name} saves ${done.join(' ')}; failed: ${names.join(' ')}`,
  )
  write((before) => {
    const raised = before.receiver_revision.map((row) => ({ ...row, revision: row.revision + 1 }))
    const deliveries = before.deliveries.flatMap((row) => {
      if (row.receiver_id !== held.id) return row
      if (done.includes(row.place)) return []
      const after = failed.find(({ place }) => place === row.place)
      if (after?.due_at === null) server().truth.noteGivenUp(held.id, row.position)
      return { ...row, ...after }
    })
    return { ...effect(before), ...(isPaused && { receiver_revision: raised }), deliveries }
  })
  return [{ held: '1' }]
}
